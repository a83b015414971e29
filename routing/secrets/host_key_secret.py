"""The value sent upstream for a host key or a host's header: from the environment, a file, or the stored secret.

No message or repr here holds a secret.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from routing.hosts.headers import NO_AUTH
from routing.secrets.encryption import SecretDecryptError, SecretError, decrypt
from routing.secrets.reserved_env_vars import is_reserved
from routing.secrets.secret_files import SecretFileError, read_secret_file

if TYPE_CHECKING:
    from routing.models import HostHeader, HostKey


class SecretMissing(SecretError):  # noqa: N818
    """There is no value to send: the environment variable is unset or empty, the file unusable, or none is named."""


class SecretForbidden(SecretError):  # noqa: N818
    """The environment variable holds a secret of the deployment itself, which must not be sent upstream."""


def host_key_secret(host_key: HostKey) -> str:
    """The value to send upstream; empty for a host without authentication.

    Raises SecretError, whose message names the host key.
    """
    if host_key.host.auth == NO_AUTH:
        return ""
    return _read_named(host_key, owner=f"host key {host_key.name}")


def host_header_value(header: HostHeader) -> str:
    """The value to send upstream. Raises SecretError, whose message names host and header."""
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
