from __future__ import annotations

import io
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from routing.credentials.credential import authenticate
from routing.credentials.relay_keys import hash_value
from routing.models import Policy, RelayKey, User
from tests.support.calls.shell import Shell, shell
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from types import SimpleNamespace

__all__ = ["shell"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9", suffix="1")


def test_a_key_of_a_service_account_works_at_once(shell: Shell, rows: SimpleNamespace) -> None:
    answer = shell.json_result("create_key", "--service-account", "account1")
    assert list(answer) == ["id", "prefix", "key"]
    credential = authenticate(answer["key"], now=timezone.now())
    assert (credential.id, credential.policy_id) == (answer["id"], rows.policy.id)


def test_a_users_key_can_have_its_own_policy_and_an_end(shell: Shell, rows: SimpleNamespace) -> None:
    other = Policy.objects.create(name="other")
    user_id = shell.json_result("create_user", "ana", "--project", "project1", "--policy", "policy1")["id"]
    answer = shell.json_result("create_key", "--user", "ana", "--policy", "other", "--expires-in", "30d")
    credential = authenticate(answer["key"], now=timezone.now())
    assert (credential.principal_id, credential.policy_id) == (user_id, other.id)
    expires_at = RelayKey.objects.get(id=answer["id"]).expires_at
    assert expires_at is not None
    assert abs(expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=1)


def test_a_new_user_has_no_password(shell: Shell, rows: SimpleNamespace) -> None:
    answer = shell.json_result("create_user", "ana", "--project", "project1", "--policy", "policy1")
    user = User.objects.get(pk=answer["id"])
    assert not user.has_usable_password()
    assert (user.project, user.policy) == (rows.project, rows.policy)


def test_rotating_answers_with_the_new_value(shell: Shell, rows: SimpleNamespace) -> None:
    answer = shell.json_result("rotate_key", str(rows.relay_key.id), "--grace-seconds", "60")
    assert list(answer) == ["id", "prefix", "key"]
    key = RelayKey.objects.get(id=rows.relay_key.id)
    assert key.key_hash == hash_value(answer["key"])
    assert key.grace_until is not None
    assert key.grace_until > datetime.now(UTC) + timedelta(seconds=30)


def test_switching_a_key_answers_with_its_id(shell: Shell, rows: SimpleNamespace) -> None:
    key_id = str(rows.relay_key.id)
    for command, enabled in (("disable_key", False), ("enable_key", True), ("revoke_key", True)):
        assert shell.json_result(command, key_id) == {"id": key_id}
        assert RelayKey.objects.get(id=key_id).enabled is enabled
    assert RelayKey.objects.get(id=key_id).revoked_at is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create_key", "--service-account", "nobody"], "no service account 'nobody'"),
        (["create_key", "--service-account", "two\nlines"], r"no service account 'two\nlines'"),
        (["create_key", "--user", "nobody"], "no user 'nobody'"),
        (["create_key", "--service-account", "account1", "--policy", "none"], "no policy 'none'"),
        (["create_key", "--service-account", "account1", "--user", "ana"], "not allowed with argument"),
        (["create_key"], "one of the arguments --service-account --user is required"),
        (["create_key", "--service-account", "account1", "--expires-in", "30"], "--expires-in: expected"),
        (["create_key", "--service-account", "account1", "--expires-in", "999999999999d"], "expected"),
        (["create_key", "--service-account", "account1", "--expires-in", "0d"], "expected"),
        (["rotate_key", "nonsense"], "ID: expected a key's id"),
        (["rotate_key", str(uuid.uuid4())], "no key"),
        (["rotate_key", str(uuid.uuid4()), "--grace-seconds", "-1"], "--grace-seconds: expected 0 to"),
        (["rotate_key", str(uuid.uuid4()), "--grace-seconds", "soon"], "invalid int value"),
        (["revoke_key", str(uuid.uuid4())], "no key"),
        (["disable_key", "1"], "ID: expected a key's id"),
        (["enable_key"], "required: ID"),
        (["enable_key", str(uuid.uuid4())], "no key"),
        (["create_user", "ana", "--project", "none", "--policy", "policy1"], "no project 'none'"),
        (["create_user", "a b", "--project", "project1", "--policy", "policy1"], "user 'a b': Enter a valid"),
        (["create_user", "taken", "--project", "project1", "--policy", "policy1"], "exists already"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    shell: Shell, rows: SimpleNamespace, arguments: list[str], message: str
) -> None:
    User.objects.create_user("taken")
    assert message in shell.error_line(*arguments)


def test_without_json_the_words_are_for_people(rows: SimpleNamespace) -> None:
    from django.core.management import call_command

    out = io.StringIO()
    call_command("create_key", service_account="account1", stdout=out)
    assert "Keep the key now: it is not shown again." in out.getvalue()
