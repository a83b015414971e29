"""System checks, which report at the start what would otherwise fail with the first item."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection

from routing.secrets.encryption import MasterKeyMalformed, SecretError, check_master_key
from routing.secrets.reencrypt import find_unreadable_secrets


def check_stored_secrets(**_: Any) -> list[CheckMessage]:
    """Check that RELAY_MASTER_KEY is set and decrypts every stored secret.

    It reads the database, unlike most checks. So it reports nothing while the database or its tables are unavailable.
    """
    try:
        check_master_key()
    except MasterKeyMalformed as error:
        return [Error(str(error), id="routing.E001")]
    except SecretError:
        # A missing key is an error only when a secret is stored, which decrypting that one shows.
        pass
    return [
        Error(f"{name}: {problem}", hint="Set RELAY_MASTER_KEY as before.", id="routing.E002")
        for name, problem in _unreadable_secrets()
    ]


def require_readable_secrets() -> None:
    """Check at the start of a process that runs no system checks. Raises ImproperlyConfigured with all messages."""
    found = check_stored_secrets()
    connection.close()
    if found:
        raise ImproperlyConfigured("; ".join(message.msg for message in found))


def _unreadable_secrets() -> list[tuple[str, str]]:
    try:
        return list(find_unreadable_secrets())
    except DatabaseError:
        return []
