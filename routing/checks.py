"""System checks: what cannot work is said at the start, and not by the first item that fails."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error
from django.db import DatabaseError

from routing.models import HostKey
from routing.secrets import MasterKeyMalformed, SecretError, check_master_key, decrypt


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
        Error(f"host key {name}: {problem}", hint="Set RELAY_MASTER_KEY as before.", id="routing.E002")
        for name, problem in _unreadable()
    ]


def _unreadable() -> list[tuple[str, str]]:
    try:
        stored = list(HostKey.objects.exclude(secret_encrypted=None).values_list("name", "secret_encrypted"))
    except DatabaseError:
        return []
    return [(name, problem) for name, sealed in stored if (problem := _problem(bytes(sealed or b"")))]


def _problem(sealed: bytes) -> str:
    try:
        decrypt(sealed)
    except SecretError as error:
        return str(error)
    return ""
