"""Removing the payloads of submissions and uploads that were never committed, and responses whose items are gone."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from django.db import connection

from batches.payloads import PayloadStoreUnavailable, open_store
from batches.payloads.folders import (
    database_milliseconds,
    parse_folders,
    without_rows,
)
from relaybatch.db.isolation import run_isolated

if TYPE_CHECKING:
    from datetime import datetime

    from batches.payloads import BatchPayloads
    from batches.payloads.folders import PayloadFolder

logger = logging.getLogger(__name__)

RESPONSES_PER_STEP = 5000

_DELETE_ORPHANED_RESPONSES = """
DELETE FROM batches_itemresponse WHERE item_id IN (
    SELECT item_id FROM batches_itemresponse LEFT JOIN batches_batchitem ON id = item_id WHERE id IS NULL LIMIT %s)
"""


def remove_orphans() -> None:
    run_isolated("remove_orphaned_payloads", remove_orphaned_payloads)
    run_isolated("remove_orphaned_responses", remove_orphaned_responses)


def remove_orphaned_payloads() -> None:
    """Remove folders that have no batch and are no file's, by the time in their names (UUIDv7).

    Only folders made after this database first opened the store: those that were there before, or come to a store
    that another database marked, may belong to somebody, and may be all that is left while a backup is restored.
    """
    try:
        store = open_store()
        since = store.owned_since()
        folders = list(store.folders()) if since else []
    except PayloadStoreUnavailable as error:
        logger.warning("orphaned payloads not searched", extra={"reason": str(error)})
        return
    if since:
        for folder in _orphans(folders, since=since):
            run_isolated("discard_orphan", partial(_discard_orphan, store, folder), reason=folder.name)


def remove_orphaned_responses() -> None:
    """Remove rows of responses that have no item, a bounded number at a time.

    A sweeper of the release before deletes the items of a batch alone, while both run during a deploy.
    """
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_ORPHANED_RESPONSES, [RESPONSES_PER_STEP])


def _orphans(names: list[str], *, since: datetime) -> list[PayloadFolder]:
    oldest, now = since.timestamp() * 1000, database_milliseconds()
    folders = [folder for folder in parse_folders(names) if folder.milliseconds > oldest]
    return without_rows(folder for folder in folders if folder.is_beyond_commit(now_milliseconds=now))


def _discard_orphan(store: BatchPayloads, folder: PayloadFolder) -> None:
    if folder.is_file:
        store.discard_file(folder.id)
    else:
        store.discard(folder.id)
    logger.info(
        "orphaned payloads removed",
        extra={
            "batch_id": None if folder.is_file else folder.id,
            "file_id": folder.id if folder.is_file else None,
        },
    )
