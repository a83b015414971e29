"""Encryption of secrets at rest: Fernet under RELAY_MASTER_KEY (32 bytes in base64; several by commas, newest first).

No message or repr here holds a secret or a part of a key.
"""

from __future__ import annotations

import base64
import functools

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from relaybatch.conf.env import BASE64_OF_32_BYTES


class SecretError(Exception):
    """A secret cannot be stored or read; the message says what the operator has to fix."""


class MasterKeyMissing(SecretError):  # noqa: N818 -- named for what the operator reads
    pass


class MasterKeyMalformed(SecretError):  # noqa: N818
    pass


class SecretDecryptError(SecretError):
    """The stored value was not encrypted under any of the master keys."""


def encrypt(plain: bytes) -> bytes:
    """Encrypt under the newest key. Raises MasterKeyMissing, MasterKeyMalformed."""
    return _fernet(settings.RELAY_MASTER_KEY).encrypt(plain)


def decrypt(ciphertext: bytes) -> bytes:
    """Decrypt with whichever key fits. Raises MasterKeyMissing, MasterKeyMalformed, SecretDecryptError."""
    try:
        return _fernet(settings.RELAY_MASTER_KEY).decrypt(bytes(ciphertext))
    except InvalidToken:
        raise SecretDecryptError(
            "a stored secret cannot be read: RELAY_MASTER_KEY lacks the key it was written under"
        ) from None


def reencrypt_with_newest_key(ciphertext: bytes) -> bytes | None:
    """Encrypt the same secret under the newest key; None when it already is. Raises like `decrypt`."""
    check_master_key()
    try:
        _fernet(_split_keys(settings.RELAY_MASTER_KEY)[0]).decrypt(bytes(ciphertext))
    except InvalidToken:
        return encrypt(decrypt(ciphertext))
    return None


def check_master_key() -> None:
    """Raise MasterKeyMissing or MasterKeyMalformed when no secret could be stored now."""
    _fernet(settings.RELAY_MASTER_KEY)


# Cached, because every call would derive the keys anew. The setting changes only in tests.
@functools.lru_cache(maxsize=4)
def _fernet(master_keys: str) -> MultiFernet:
    parts = _split_keys(master_keys)
    if not parts:
        raise MasterKeyMissing("RELAY_MASTER_KEY is not set: expected 32 random bytes in base64")
    return MultiFernet([Fernet(_fernet_key(part)) for part in parts])


def _split_keys(master_keys: str) -> list[str]:
    return [part.strip() for part in master_keys.split(",") if part.strip()]


def _fernet_key(part: str) -> bytes:
    """The key as Fernet takes it, base64url with padding, from standard or URL-safe base64 with or without padding."""
    if not BASE64_OF_32_BYTES.fullmatch(part):
        raise MasterKeyMalformed("RELAY_MASTER_KEY: expected 32 bytes in base64, or several by commas")
    text = part.replace("+", "-").replace("/", "_")
    return base64.urlsafe_b64encode(base64.urlsafe_b64decode(text.rstrip("=") + "="))
