from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.catalog import validators
from routing.models import Host, HostKey
from routing.secrets.encryption import (
    MasterKeyMalformed,
    MasterKeyMissing,
    SecretDecryptError,
    SecretForbidden,
    SecretMissing,
    decrypt,
    encrypt,
    host_key_secret,
)

if TYPE_CHECKING:
    from pytest_django import Settings

OLD = base64.standard_b64encode(b"\xfb\xff" * 16).decode()
NEW = base64.urlsafe_b64encode(b"\xfb\xfe" * 16).decode()


def test_standard_and_urlsafe_base64_are_the_same_key(settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = OLD
    sealed = encrypt(b"upstream secret")
    settings.RELAY_MASTER_KEY = OLD.translate(str.maketrans("+/", "-_")).rstrip("=")
    assert decrypt(sealed) == b"upstream secret"


def test_the_newest_key_writes_and_older_ones_still_read(settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = OLD
    old = encrypt(b"one")
    settings.RELAY_MASTER_KEY = f"{NEW}, {OLD}"
    assert decrypt(old) == b"one"
    new = encrypt(b"two")
    settings.RELAY_MASTER_KEY = NEW
    assert decrypt(new) == b"two"
    with pytest.raises(SecretDecryptError, match="RELAY_MASTER_KEY"):
        decrypt(old)


def test_a_missing_master_key_is_said_so(settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = ""
    with pytest.raises(MasterKeyMissing, match="RELAY_MASTER_KEY is not set"):
        encrypt(b"x")


@pytest.mark.parametrize("wrong", ["short", OLD[:-4], OLD + "AAAA", "!" * 44, f"{NEW},short"])
def test_a_malformed_master_key_is_named_but_not_shown(wrong: str, settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = wrong
    with pytest.raises(MasterKeyMalformed) as refused:
        encrypt(b"x")
    assert "RELAY_MASTER_KEY" in str(refused.value)
    assert wrong not in str(refused.value)


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
