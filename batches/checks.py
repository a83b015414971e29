"""System checks of what batches need; none of them queries the database."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error

from batches.payloads import PayloadStoreUnavailable, fallback_directory, payload_directory
from batches.payloads.opening import open_fallback_store, open_main_store

if TYPE_CHECKING:
    from collections.abc import Callable

# The worker monitor sends a heartbeat every sixth of it, and polls twice a second.
MIN_WORKER_LOST_SECONDS = 3


def check_payload_directory(**_: Any) -> list[CheckMessage]:
    """Check that the payload directory, or the folder that it would be created in, is writable. Creates nothing."""
    directory = payload_directory()
    if directory is None:
        return []
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not existing.is_dir():
        problem = f"{existing} is no directory"
    elif not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        problem = f"{existing} is not writable for this user"
    else:
        return []
    name = "RELAY_BATCH_PAYLOAD_URL" if settings.RELAY_BATCH_PAYLOAD_URL else "RELAY_BATCH_PAYLOAD_DIR"
    return [
        Error(
            f"{name} ({directory}): {problem}",
            hint="Make it writable, or set RELAY_BATCH_PAYLOAD_DIR or RELAY_BATCH_PAYLOAD_URL to another place.",
            id="batches.E001",
        )
    ]


def check_payload_fallback(**_: Any) -> list[CheckMessage]:
    """Check that the fallback is another store, and that its directory is there. Sends it no request."""
    url, directory = settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL, fallback_directory()
    if not url:
        return []
    if url == settings.RELAY_BATCH_PAYLOAD_URL or (directory and directory == payload_directory()):
        problem = "it is the payload store itself"
    elif directory and not directory.is_dir():
        problem = f"{directory} is missing or no directory"
    else:
        return []
    return [
        Error(
            f"RELAY_BATCH_PAYLOAD_FALLBACK_URL: {problem}",
            hint="Name the store to move to or from; `manage.py move_payloads --prepare` makes a missing folder.",
            id="batches.E004",
        )
    ]


def check_payload_url(**_: Any) -> list[CheckMessage]:
    """Check that each payload store can be opened with the variables of its kind. Sends it no request."""
    found: list[CheckMessage] = []
    if not payload_directory():
        found += _opening_errors("RELAY_BATCH_PAYLOAD_URL", open_main_store)
    if not fallback_directory():
        found += _opening_errors("RELAY_BATCH_PAYLOAD_FALLBACK_URL", open_fallback_store)
    return found


def _opening_errors(name: str, open_one: Callable[[], object]) -> list[CheckMessage]:
    try:
        open_one()
    except PayloadStoreUnavailable as error:
        return [
            Error(
                f"{name}: {error}",
                hint="Set the variables that its kind of store asks for, as AZURE_STORAGE_ACCOUNT_NAME.",
                id="batches.E003",
            )
        ]
    return []


def check_worker_lost(**_: Any) -> list[CheckMessage]:
    if settings.RELAY_WORKER_LOST_S >= MIN_WORKER_LOST_SECONDS:
        return []
    return [
        Error(
            f"RELAY_WORKER_LOST_S is {settings.RELAY_WORKER_LOST_S}: busy workers would count as lost",
            hint=f"Set RELAY_WORKER_LOST_S to {MIN_WORKER_LOST_SECONDS} or more; 30 is usual.",
            id="batches.E002",
        )
    ]
