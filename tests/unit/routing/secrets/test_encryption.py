from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from routing.secrets.encryption import (
    MasterKeyMalformed,
    MasterKeyMissing,
    SecretDecryptError,
    decrypt,
    encrypt,
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
