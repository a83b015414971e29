"""Removing the payloads of submissions that were never committed, and responses whose items are gone."""

from __future__ import annotations

import logging
import uuid
from functools import partial
from typing import TYPE_CHECKING

from django.db import connection

from batches.models import Batch
from batches.payloads import PayloadStoreUnavailable, open_store
from relaybatch.db.isolation import run_isolated

if TYPE_CHECKING:
    from datetime import datetime

    from batches.payloads import BatchPayloads

logger = logging.getLogger(__name__)

# A submission stores its requests before its rows: a folder without a batch is an orphan only when it is old.
MIN_ORPHANED_AGE_SECONDS = 3600
RESPONSES_PER_STEP = 5000

_DELETE_ORPHANED_RESPONSES = """
DELETE FROM batches_itemresponse WHERE item_id IN (
    SELECT item_id FROM batches_itemresponse LEFT JOIN batches_batchitem ON id = item_id WHERE id IS NULL LIMIT %s)
"""


def remove_orphans() -> None:
    run_isolated("remove_orphaned_payloads", remove_orphaned_payloads)
    run_isolated("remove_orphaned_responses", remove_orphaned_responses)


def remove_orphaned_payloads() -> None:
    """Remove folders that have no batch, by the time in their names (UUIDv7).

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
        for batch_id in _orphans(folders, since=since):
            run_isolated("discard_orphan", partial(_discard_orphan, store, batch_id), batch_id=batch_id)


def remove_orphaned_responses() -> None:
    """Remove rows of responses that have no item, a bounded number at a time.

    A sweeper of the release before deletes the items of a batch alone, while both run during a deploy.
    """
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_ORPHANED_RESPONSES, [RESPONSES_PER_STEP])


def _orphans(folders: list[str], *, since: datetime) -> set[uuid.UUID]:
    oldest, youngest = since.timestamp() * 1000, database_milliseconds() - MIN_ORPHANED_AGE_SECONDS * 1000
    ids = {id_ for id_ in map(_parse_folder_name, folders) if id_ and oldest < id_.int >> 80 < youngest}
    return ids - set(Batch.objects.filter(id__in=ids).values_list("id", flat=True))


def _discard_orphan(store: BatchPayloads, batch_id: uuid.UUID) -> None:
    store.discard(batch_id)
    logger.info("orphaned payloads removed", extra={"batch_id": batch_id})


def database_milliseconds() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        milliseconds: int = cursor.fetchone()[0]
    return milliseconds


def _parse_folder_name(folder: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(hex=folder)
    except ValueError:
        return None
