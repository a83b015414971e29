from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.catalog.fields import validators
from routing.models import Host, HostHeader, HostKey
from routing.secrets.encryption import SecretDecryptError, encrypt
from routing.secrets.host_key_secret import (
    SecretForbidden,
    SecretMissing,
    host_header_value,
    host_key_secret,
)

if TYPE_CHECKING:
    from pytest_django import Settings

OLD = base64.standard_b64encode(b"\xfb\xff" * 16).decode()
NEW = base64.urlsafe_b64encode(b"\xfb\xfe" * 16).decode()


def test_a_host_keys_secret_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    host_key = HostKey(name="main", host=Host(name="h"), env_name="SOME_UPSTREAM_KEY")
    monkeypatch.setenv("SOME_UPSTREAM_KEY", "from-the-environment\n")
    assert host_key_secret(host_key) == "from-the-environment"
    monkeypatch.delenv("SOME_UPSTREAM_KEY")
    with pytest.raises(
        SecretMissing, match="host key main: environment variable SOME_UPSTREAM_KEY is not set"
    ):
        host_key_secret(host_key)


OWN_NAMES = ["DATABASE_URL", "REDIS_URL", "RELAY_BATCH_PAYLOAD_URL", "AWS_SECRET_ACCESS_KEY"]
OWN_NAMES += re.findall(r'env\.secret\("(\w+)"\)', Path("relaybatch/settings.py").read_text())
OWN_NAMES += [f"{name}_FILE" for name in OWN_NAMES]


@pytest.mark.parametrize("name", OWN_NAMES)
def test_no_host_key_sends_a_secret_of_the_deployment(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "hunter2")
    with pytest.raises(ValueError, match="the deployment's own"):
        validators.environment_name(name)
    with pytest.raises(SecretForbidden, match="the deployment's own") as refused:
        host_key_secret(HostKey(name="main", host=Host(name="h"), env_name=name))
    assert "hunter2" not in str(refused.value)


def test_a_host_keys_secret_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-from-a-file\n")
    host_key = HostKey(name="main", host=Host(name="h"), file_path=str(file))
    assert host_key_secret(host_key) == "sk-from-a-file"
    file.write_text("two\nlines")
    with pytest.raises(SecretMissing, match=r"host key main: file .*key does not hold one line") as refused:
        host_key_secret(host_key)
    assert "lines" not in str(refused.value)


def test_a_host_key_without_a_value_is_as_good_as_unset() -> None:
    with pytest.raises(SecretMissing, match="host key main: it has no value"):
        host_key_secret(HostKey(name="main", host=Host(name="h")))


def test_a_host_that_is_sent_none_is_sent_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_UPSTREAM_KEY", "from-the-environment")
    host = Host(name="h", auth="none")
    assert host_key_secret(HostKey(name="main", host=host)) == ""
    assert host_key_secret(HostKey(name="main", host=host, env_name="SOME_UPSTREAM_KEY")) == ""


def test_a_host_keys_stored_secret_is_decrypted(settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = NEW
    host_key = HostKey(name="main", host=Host(name="h"), secret_encrypted=encrypt(b"stored"))
    assert host_key_secret(host_key) == "stored"
    settings.RELAY_MASTER_KEY = OLD
    with pytest.raises(SecretDecryptError, match="host key main: "):
        host_key_secret(host_key)


def test_a_stored_secret_that_is_not_text_is_named_and_not_shown(settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = NEW
    host_key = HostKey(name="main", host=Host(name="h"), secret_encrypted=encrypt(b"\xff\xfe"))
    with pytest.raises(SecretDecryptError, match=r"^host key main: what is stored is no text$"):
        host_key_secret(host_key)


def test_a_headers_value_is_its_text_or_its_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_UPSTREAM_KEY", "from-the-environment")
    host = Host(name="h")
    assert host_header_value(HostHeader(name="X-Team", host=host, text="search")) == "search"
    secret = HostHeader(name="X-Key", host=host, env_name="SOME_UPSTREAM_KEY")
    assert host_header_value(secret) == "from-the-environment"


def test_a_header_without_a_value_is_named_with_its_host() -> None:
    with pytest.raises(SecretMissing, match=r"^header X-Key of host h: it has no value$"):
        host_header_value(HostHeader(name="X-Key", host=Host(name="h")))
