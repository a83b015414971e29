"""System checks: what cannot work is said at the start, and not by the first item that fails."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection

from routing.secrets.encryption import MasterKeyMalformed, SecretError, check_master_key
from routing.secrets.reencrypt import find_unreadable_secrets


def check_stored_secrets(**_: Any) -> list[CheckMessage]:
    """RELAY_MASTER_KEY is there, and opens every secret that is stored.

    It looks at the database, which most checks don't: so it says nothing while that, or its tables, are away.
    """
    try:
        check_master_key()
    except MasterKeyMalformed as error:
        return [Error(str(error), id="routing.E001")]
    except SecretError:
        # Missing is an error only when something is stored, as decrypting it shows.
        pass
    return [
        Error(f"{name}: {problem}", hint="Set RELAY_MASTER_KEY as before.", id="routing.E002")
        for name, problem in _unreadable_secrets()
    ]


def require_readable_secrets() -> None:
    """For the start of a process that runs no checks. Raises ImproperlyConfigured with everything found."""
    found = check_stored_secrets()
    connection.close()
    if found:
        raise ImproperlyConfigured("; ".join(message.msg for message in found))


def _unreadable_secrets() -> list[tuple[str, str]]:
    try:
        return list(find_unreadable_secrets())
    except DatabaseError:
        return []
