from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from relaybatch.http.errors import Unauthenticated
from routing.credentials.credential import authenticate
from routing.credentials.signing_keys import current_signer
from routing.models import HostHeader, HostKey, Project, SigningKey, User
from routing.secrets.encryption import decrypt, encrypt
from routing.secrets.reencrypt import find_unreadable_secrets, reencrypt_all
from tests.support.calls.shell import Shell, shell
from tests.support.rows.catalog import make_catalog
from tests.support.run.races import run_concurrently

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import Settings

__all__ = ["shell"]
pytestmark = pytest.mark.django_db
NEW, OTHER = (base64.b64encode(name.ljust(32)).decode() for name in (b"new", b"other"))


@pytest.fixture
def rows() -> SimpleNamespace:
    rows = make_catalog("http://127.0.0.1:9", suffix="1", host_key_values=("one", "two"))
    rows.user = User.objects.create_user("ana", project=rows.project, policy=rows.policy)
    return rows


def test_a_token_works_at_once(shell: Shell, rows: SimpleNamespace) -> None:
    answer = shell.json_result("mint_token", "--user", "ana")
    assert list(answer) == ["token", "jti", "expires_at"]
    assert answer["expires_at"].endswith("Z")
    credential = authenticate(answer["token"], now=timezone.now())
    assert (credential.id, credential.project_id) == (answer["jti"], rows.project.id)


def test_an_operator_may_mint_for_any_project_and_time(shell: Shell, rows: SimpleNamespace) -> None:
    other = Project.objects.create(name="other", team=rows.team)
    answer = shell.json_result("mint_token", "--user", "ana", "--project", "other", "--ttl", "24h")
    assert authenticate(answer["token"], now=timezone.now()).project_id == other.id


def test_revoking_counts_the_tokens_in_use(shell: Shell, rows: SimpleNamespace) -> None:
    minted = [shell.json_result("mint_token", "--user", "ana") for _ in range(3)]
    jti = minted[0]["jti"]
    assert shell.json_result("revoke_tokens", "--jti", jti) == {"revoked": 1}
    assert shell.json_result("revoke_tokens", "--jti", jti) == {"revoked": 0}
    assert shell.json_result("revoke_tokens", "--user", "ana") == {"revoked": 2}
    for answer in minted:
        with pytest.raises(Unauthenticated, match="revoked"):
            authenticate(answer["token"], now=timezone.now())
    authenticate(shell.json_result("mint_token", "--user", "ana")["token"], now=timezone.now())


def test_another_key_signs_after_a_rotation(shell: Shell, rows: SimpleNamespace) -> None:
    before = shell.json_result("mint_token", "--user", "ana")["token"]
    assert shell.json_result("rotate_signing_key") == {"created": 1, "retired": 1}
    after = shell.json_result("mint_token", "--user", "ana")["token"]
    for token in (before, after):
        assert authenticate(token, now=timezone.now()).principal_id == str(rows.user.pk)


def test_all_secrets_move_to_the_newest_master_key(
    shell: Shell, rows: SimpleNamespace, settings: Settings
) -> None:
    token = shell.json_result("mint_token", "--user", "ana")["token"]
    settings.RELAY_MASTER_KEY = f"{NEW},{settings.RELAY_MASTER_KEY}"
    moved = {"host_keys": 2, "host_headers": 0, "signing_keys": 1, "unchanged": 0}
    assert shell.json_result("reencrypt") == moved
    assert shell.json_result("reencrypt") == {
        "host_keys": 0,
        "host_headers": 0,
        "signing_keys": 0,
        "unchanged": 3,
    }
    settings.RELAY_MASTER_KEY = NEW
    values = {decrypt(bytes(key.secret_encrypted or b"")) for key in HostKey.objects.all()}
    assert values == {b"one", b"two"}
    shell.json_result("mint_token", "--user", "ana")
    authenticate(token, now=timezone.now())


def test_headers_of_hosts_move_to_the_newest_master_key(
    shell: Shell, rows: SimpleNamespace, settings: Settings
) -> None:
    header = HostHeader.objects.create(host=rows.host, name="X-Sealed", secret_encrypted=encrypt(b"three"))
    HostHeader.objects.create(host=rows.host, name="X-Team", text="search")
    settings.RELAY_MASTER_KEY = f"{NEW},{settings.RELAY_MASTER_KEY}"
    assert shell.json_result("reencrypt")["host_headers"] == 1
    settings.RELAY_MASTER_KEY = NEW
    header.refresh_from_db()
    assert decrypt(bytes(header.secret_encrypted or b"")) == b"three"
    assert list(find_unreadable_secrets()) == []


@pytest.mark.django_db(transaction=True)
def test_runs_at_once_move_each_secret_once(rows: SimpleNamespace, settings: Settings) -> None:
    current_signer()
    settings.RELAY_MASTER_KEY = f"{NEW},{settings.RELAY_MASTER_KEY}"
    runs = run_concurrently([reencrypt_all] * 8)
    assert sum(sum(run.counts.values()) for run in runs) == 3
    assert [run.problems for run in runs] == [[]] * 8
    settings.RELAY_MASTER_KEY = NEW
    assert list(find_unreadable_secrets()) == []


def test_a_secret_that_cannot_be_moved_is_named_and_stops_no_other(
    shell: Shell, rows: SimpleNamespace, settings: Settings
) -> None:
    sealed, broken = rows.host_keys[1], rows.host_keys[0]
    HostKey.objects.filter(id=broken.id).update(secret_encrypted=b"nonsense")
    settings.RELAY_MASTER_KEY = f"{NEW},{settings.RELAY_MASTER_KEY}"
    message = shell.error_line("reencrypt")
    assert message.startswith(f"1 moved, 1 not: host key {broken.name}: a stored secret cannot be read")
    settings.RELAY_MASTER_KEY = NEW
    sealed.refresh_from_db()
    assert decrypt(bytes(sealed.secret_encrypted)) == b"two"


def test_a_host_key_from_the_environment_has_nothing_to_move(shell: Shell, rows: SimpleNamespace) -> None:
    HostKey.objects.update(secret_encrypted=None, env_name="SOME_KEY")
    assert shell.json_result("reencrypt") == {
        "host_keys": 0,
        "host_headers": 0,
        "signing_keys": 0,
        "unchanged": 0,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mint_token"], "required: --user"),
        (["mint_token", "--user", "nobody"], "no user 'nobody'"),
        (["mint_token", "--user", "ana", "--project", "none"], "no project 'none'"),
        (["mint_token", "--user", "ana", "--ttl", "25h"], "ttl: expected 1s to 24h"),
        (["mint_token", "--user", "ana", "--ttl", "soon"], "--ttl: expected a whole number and a unit"),
        (["mint_token", "--user", "lost"], "user 'lost' has no project"),
        (["revoke_tokens"], "one of the arguments --user --jti is required"),
        (["revoke_tokens", "--jti", "1"], "--jti: expected a token's id, a UUID"),
        (["revoke_tokens", "--user", "nobody"], "no user 'nobody'"),
        (["revoke_tokens", "--user", "ana", "--jti", str(uuid.uuid4())], "not allowed with argument"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    shell: Shell, rows: SimpleNamespace, arguments: list[str], message: str
) -> None:
    User.objects.create_user("lost")
    assert message in shell.error_line(*arguments)


@pytest.mark.parametrize("command", [["mint_token", "--user", "ana"], ["rotate_signing_key"], ["reencrypt"]])
def test_without_a_master_key_nothing_can_be_stored(
    shell: Shell, rows: SimpleNamespace, settings: Settings, command: list[str]
) -> None:
    settings.RELAY_MASTER_KEY = ""
    assert "RELAY_MASTER_KEY is not set" in shell.error_line(*command)
    assert not SigningKey.objects.exists()


def test_a_signing_key_under_a_lost_master_key_is_rotated_away(
    shell: Shell, rows: SimpleNamespace, settings: Settings
) -> None:
    shell.json_result("mint_token", "--user", "ana")
    settings.RELAY_MASTER_KEY = OTHER
    assert "signing key" in shell.error_line("mint_token", "--user", "ana")
    shell.json_result("rotate_signing_key")
    shell.json_result("mint_token", "--user", "ana")
