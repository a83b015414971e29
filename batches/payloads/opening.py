"""Opening the stores that the settings choose."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from batches.payloads.batch_payloads import BatchPayloads
from batches.payloads.database import DatabasePayloads
from batches.payloads.directory import DirectoryPayloads
from batches.payloads.object_store import ObjectPayloads
from relaybatch.conf.url_settings import folder_from_url

if TYPE_CHECKING:
    from batches.payloads.store import PayloadStore


def open_store() -> BatchPayloads:
    """Open the deployment's store. Cheap to call; a missing directory is created. Raises PayloadStoreUnavailable.

    A fallback's directory is not created: while it is missing, the store is opened and its check fails.
    """
    return _open(
        settings.RELAY_BATCH_PAYLOAD_URL,
        settings.RELAY_BATCH_PAYLOAD_DIR,
        settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL,
    )


def payload_directory() -> Path | None:
    """Return the directory of the payloads, set as a path or a `file:` URL; None where they are stored elsewhere."""
    return _directory(settings.RELAY_BATCH_PAYLOAD_URL, settings.RELAY_BATCH_PAYLOAD_DIR)


def fallback_directory() -> Path | None:
    """Return the directory of the fallback; None without one, or where the fallback is of another kind."""
    return folder_from_url(settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL)


def open_main_store() -> PayloadStore:
    """Open the store without its fallback, by its own names. Raises PayloadStoreUnavailable."""
    directory = payload_directory()
    has_fallback = bool(settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL)
    return _open_one(settings.RELAY_BATCH_PAYLOAD_URL, directory, has_fallback=has_fallback)


def open_fallback_store(*, make_root: bool = False) -> PayloadStore | None:
    """Open the fallback alone; None when none is set. Raises PayloadStoreUnavailable."""
    url = settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL
    return _open_one(url, folder_from_url(url), make_root=make_root) if url else None


@functools.lru_cache(maxsize=4)
def _open(url: str, path: str, fallback_url: str) -> BatchPayloads:
    main = _open_one(url, _directory(url, path), has_fallback=bool(fallback_url))
    if not fallback_url:
        return BatchPayloads(main)
    return BatchPayloads(
        main, fallback=_open_one(fallback_url, folder_from_url(fallback_url), make_root=False)
    )


def _open_one(
    url: str, directory: Path | None, *, make_root: bool = True, has_fallback: bool = False
) -> PayloadStore:
    if url == "postgres:":
        return DatabasePayloads()
    if directory:
        return DirectoryPayloads(directory, make_root=make_root, has_fallback=has_fallback)
    return ObjectPayloads.from_url(url)


def _directory(url: str, path: str) -> Path | None:
    return folder_from_url(url) if url else Path(path).absolute()
