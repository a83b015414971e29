from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from django.core.checks import run_checks
from django.utils import timezone

from routing.checks import check_stored_secrets
from routing.credentials.signing_keys import current_signer, rotate_signing_key
from routing.models import Host, HostHeader, HostKey
from routing.secrets.encryption import encrypt
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db
ANOTHER = base64.b64encode(b"another key".ljust(32)).decode()


def found() -> list[str | None]:
    return [message.id for message in check_stored_secrets()]


def test_a_key_that_opens_what_is_stored_is_fine() -> None:
    make_catalog("http://127.0.0.1:9")
    assert found() == []


def test_no_master_key_is_fine_while_nothing_is_stored(settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = ""
    assert found() == []


@pytest.mark.parametrize("key", ["", ANOTHER])
def test_a_missing_or_wrong_key_is_an_error_for_each_secret(settings: Settings, key: str) -> None:
    make_catalog("http://127.0.0.1:9", host_key_values=("one", "two"))
    HostKey.objects.create(
        name="from the environment", host=HostKey.objects.all()[0].host, env_name="SOME_KEY"
    )
    settings.RELAY_MASTER_KEY = key
    assert found() == ["routing.E002", "routing.E002"]


def test_a_secret_header_of_a_host_is_a_stored_secret(settings: Settings) -> None:
    host = Host.objects.create(name="h", base_url="http://127.0.0.1:9")
    HostHeader.objects.create(host=host, name="X-Team", text="search")
    HostHeader.objects.create(host=host, name="X-Sealed", secret_encrypted=encrypt(b"x"))
    settings.RELAY_MASTER_KEY = ANOTHER
    (message,) = check_stored_secrets()
    assert str(message.msg).startswith("host header h X-Sealed: a stored secret cannot be read")


def test_a_signing_key_is_a_stored_secret_until_it_is_retired(settings: Settings) -> None:
    kid = current_signer().kid
    settings.RELAY_MASTER_KEY = ANOTHER
    assert [str(message.msg).startswith(f"signing key {kid}: ") for message in check_stored_secrets()] == [
        True
    ]
    rotate_signing_key(now=timezone.now())
    assert found() == []


def test_a_malformed_key_is_an_error_in_any_case(settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = "not base64 of 32 bytes"
    assert found() == ["routing.E001"]


def test_the_check_runs_with_the_others(settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = "not base64 of 32 bytes"
    assert "routing.E001" in [message.id for message in run_checks()]
