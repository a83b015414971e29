"""Secrets at rest: Fernet tokens under RELAY_MASTER_KEY (32 bytes in base64; several by commas, newest first).

No message or repr here holds a secret or a part of a key.
"""

from __future__ import annotations

import base64
import functools
import os
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from relaybatch.conf.env import BASE64_OF_32_BYTES
from routing.secrets.reserved_env_vars import is_reserved
from routing.secrets.secret_files import SecretFileError, read_secret_file
from routing.upstream.headers import NO_AUTH

if TYPE_CHECKING:
    from routing.models import HostHeader, HostKey


class SecretError(Exception):
    """A secret cannot be stored or read; the message says what the operator has to mend."""


class MasterKeyMissing(SecretError):  # noqa: N818 -- named for what the operator reads
    pass


class MasterKeyMalformed(SecretError):  # noqa: N818
    pass


class SecretDecryptError(SecretError):
    """What is stored was not written under any of the keys given."""


class SecretMissing(SecretError):  # noqa: N818
    """There is nothing to send: the environment variable is unset or empty, the file is of no use, or none is named."""


class SecretForbidden(SecretError):  # noqa: N818
    """The environment variable holds a secret of the deployment itself, which no upstream may get."""


def encrypt(plain: bytes) -> bytes:
    """Under the newest key. Raises MasterKeyMissing, MasterKeyMalformed."""
    return _fernet(settings.RELAY_MASTER_KEY).encrypt(plain)


def decrypt(sealed: bytes) -> bytes:
    """With whichever key fits. Raises MasterKeyMissing, MasterKeyMalformed, SecretUnreadable."""
    try:
        return _fernet(settings.RELAY_MASTER_KEY).decrypt(bytes(sealed))
    except InvalidToken:
        raise SecretDecryptError(
            "a stored secret cannot be read: RELAY_MASTER_KEY lacks the key it was written under"
        ) from None


def reencrypt_with_newest_key(sealed: bytes) -> bytes | None:
    """The same secret under the newest key; None when it is under that already. Raises as `decrypt` does."""
    check_master_key()
    try:
        _fernet(_split_keys(settings.RELAY_MASTER_KEY)[0]).decrypt(bytes(sealed))
    except InvalidToken:
        return encrypt(decrypt(sealed))
    return None


def check_master_key() -> None:
    """Raises MasterKeyMissing or MasterKeyMalformed when nothing could be stored now."""
    _fernet(settings.RELAY_MASTER_KEY)


def host_key_secret(host_key: HostKey) -> str:
    """The value to send upstream; empty for a host that is sent none. Raises SecretError, which names the host key."""
    if host_key.host.auth == NO_AUTH:
        return ""
    return _read_named(host_key, owner=f"host key {host_key.name}")


def host_header_value(header: HostHeader) -> str:
    """The value to send upstream. Raises SecretError, which names host and header."""
    return header.text or _read_named(header, owner=f"header {header.name} of host {header.host.name}")


def _read_named(row: HostKey | HostHeader, *, owner: str) -> str:
    try:
        return _read(row)
    except SecretError as error:
        raise type(error)(f"{owner}: {error}") from None


def _read(row: HostKey | HostHeader) -> str:
    if row.env_name:
        return _from_environment(row.env_name)
    if row.file_path:
        return _from_file(row.file_path)
    if row.secret_encrypted is None:
        raise SecretMissing("it has no value")
    try:
        return decrypt(bytes(row.secret_encrypted)).decode()
    except UnicodeDecodeError:
        raise SecretDecryptError("what is stored is no text") from None


def _from_environment(name: str) -> str:
    if is_reserved(name):
        raise SecretForbidden(f"environment variable {name} is the deployment's own")
    value = os.environ.get(name, "").strip()
    if not value:
        raise SecretMissing(f"environment variable {name} is not set")
    return value


def _from_file(path: str) -> str:
    try:
        return read_secret_file(path)
    except SecretFileError as problem:
        raise SecretMissing(f"file {path} {problem}") from None


# Deriving the keys is repeated work in the path of every call; the settings change in tests only.
@functools.lru_cache(maxsize=4)
def _fernet(master_keys: str) -> MultiFernet:
    parts = _split_keys(master_keys)
    if not parts:
        raise MasterKeyMissing("RELAY_MASTER_KEY is not set: expected 32 random bytes in base64")
    return MultiFernet([Fernet(_fernet_key(part)) for part in parts])


def _split_keys(master_keys: str) -> list[str]:
    return [part.strip() for part in master_keys.split(",") if part.strip()]


def _fernet_key(part: str) -> bytes:
    """Fernet wants base64url with padding; standard base64 and missing padding are taken too."""
    if not BASE64_OF_32_BYTES.fullmatch(part):
        raise MasterKeyMalformed("RELAY_MASTER_KEY: expected 32 bytes in base64, or several by commas")
    text = part.replace("+", "-").replace("/", "_")
    return base64.urlsafe_b64encode(base64.urlsafe_b64decode(text.rstrip("=") + "="))
