"""Removing what is no longer wanted, in steps small enough to hold no lock for long. Safe to repeat."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from batches.models import Batch, IdempotencyKey, KeylessCreate
from batches.payloads import PayloadStoreUnavailable, PayloadWriteError, open_store
from batches.sweeper.sweep import end_complete_batches
from relaybatch.db.clock import database_now
from relaybatch.db.isolation import run_isolated
from routing.credentials.tokens import delete_expired_tokens
from usage.totals import delete_batch_total

if TYPE_CHECKING:
    from datetime import datetime

    from batches.payloads import BatchPayloads

logger = logging.getLogger(__name__)

BATCHES_PER_STEP = 20
ITEMS_PER_STEP = 5000
# A submission stores its requests before its rows: a folder without a batch is a leftover only when it is old.
MIN_ORPHAN_AGE_SECONDS = 3600

_DELETE_ITEMS = """
DELETE FROM batches_batchitem WHERE id IN (SELECT id FROM batches_batchitem WHERE batch_id = %s LIMIT %s)
"""
_DELETE_LOST_WORKERS = """
DELETE FROM batches_worker w WHERE w.seen_at < clock_timestamp() - make_interval(secs => %s)
AND NOT EXISTS (SELECT FROM batches_batchitem i WHERE i.state = 'running' AND i.worker_id = w.id)
"""


class Cleanup:
    """Goes over what is to be removed a step at a time, round and round, past what cannot be removed."""

    def __init__(self) -> None:
        self._deleted_after: tuple[datetime | None, uuid.UUID] | None = None

    def run(self) -> None:
        run_isolated("ending batches", end_complete_batches)
        run_isolated("retention", delete_expired_batches)
        run_isolated("removing deleted batches", self._remove_deleted_batches)
        run_isolated("forgetting old answers", IdempotencyKey.objects.expired().delete)
        run_isolated("forgetting creates that nobody sends again", KeylessCreate.objects.expired().delete)
        run_isolated("forgetting dead workers", delete_lost_workers)
        run_isolated("forgetting old tokens", _delete_expired_tokens)

    def remove_orphaned_payloads(self) -> None:
        run_isolated("removing payloads without a batch", remove_orphaned_payloads)

    def _remove_deleted_batches(self) -> None:
        step = list(Batch.objects.deleted(after=self._deleted_after)[:BATCHES_PER_STEP])
        for _, batch_id in step:
            run_isolated("removing a batch", partial(_remove_batch, batch_id), batch_id=batch_id)
        self._deleted_after = step[-1] if len(step) == BATCHES_PER_STEP else None


def delete_expired_batches() -> None:
    """Marks as deleted what ended more than RELAY_BATCH_RETENTION_DAYS ago; unset keeps everything."""
    days = settings.RELAY_BATCH_RETENTION_DAYS
    if days is None:
        return
    old = Batch.objects.filter(deleted_at=None, ended_at__lt=Now() - timedelta(days=days))
    Batch.objects.filter(id__in=old.order_by("ended_at", "id").values("id")[: BATCHES_PER_STEP * 10]).update(
        deleted_at=Now()
    )


def remove_orphaned_payloads() -> None:
    """Folders of submissions that were never committed, told by the time in their names.

    Only what came after this database met the store: whatever was there before, or comes to one that another
    database marked, may be somebody's, and may be all that is left while a backup is restored.
    """
    try:
        store = open_store()
        since = store.owned_since()
        folders = list(store.folders()) if since else []
    except PayloadStoreUnavailable as error:
        logger.warning("payloads without a batch are not looked for: %s", error)
        return
    if since:
        for batch_id in _orphans(folders, since=since):
            run_isolated("removing payloads", partial(_discard_orphan, store, batch_id), batch_id=batch_id)


def _orphans(folders: list[str], *, since: datetime) -> set[uuid.UUID]:
    oldest, youngest = since.timestamp() * 1000, database_milliseconds() - MIN_ORPHAN_AGE_SECONDS * 1000
    ids = {id_ for id_ in map(_parse_folder_name, folders) if id_ and oldest < id_.int >> 80 < youngest}
    return ids - set(Batch.objects.filter(id__in=ids).values_list("id", flat=True))


def _discard_orphan(store: BatchPayloads, batch_id: uuid.UUID) -> None:
    store.discard(batch_id)
    logger.info("removed payloads of a submission that was never stored", extra={"batch_id": batch_id})


def _delete_expired_tokens() -> None:
    delete_expired_tokens(now=database_now())


def delete_lost_workers() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_LOST_WORKERS, [settings.RELAY_WORKER_LOST_S])


def database_milliseconds() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        milliseconds: int = cursor.fetchone()[0]
    return milliseconds


def _remove_batch(batch_id: uuid.UUID) -> None:
    """Payloads first: whatever stops this in the middle, the row is still there to begin again from.

    Not while their volume is away: nobody would think of them when it is back.
    """
    try:
        # A folder that is not there is taken for one that was removed: its volume may be just coming or going.
        open_store().check()
        open_store().discard(batch_id)
        open_store().check()
    except (PayloadWriteError, PayloadStoreUnavailable):
        logger.warning("payloads could not be removed; they are tried again", extra={"batch_id": batch_id})
        return
    while _delete_some_items(batch_id):
        pass
    with transaction.atomic():  # who keeps a late event of it holds the row meanwhile
        Batch.objects.filter(id=batch_id).delete()
        delete_batch_total(batch_id)


def _delete_some_items(batch_id: uuid.UUID) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_ITEMS, [batch_id, ITEMS_PER_STEP])
        return int(cursor.rowcount)


def _parse_folder_name(folder: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(hex=folder)
    except ValueError:
        return None
