"""Removing what is no longer wanted, in steps small enough to hold no lock for long. Safe to repeat."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from batches.clock import database_now
from batches.models import Batch, IdempotencyKey
from batches.payloads import PayloadStoreUnavailable, PayloadUnwritable, open_store
from batches.sweep import end_finished
from routing.tokens import forget_expired
from usage.totals import forget_batch

logger = logging.getLogger(__name__)

BATCHES_A_STEP = 20
ITEMS_A_STEP = 5000
# A submission stores its requests before its rows: a folder without a batch is a leftover only when it is old.
ORPHAN_SECONDS = 3600

_DELETE_ITEMS = """
DELETE FROM batches_batchitem WHERE id IN (SELECT id FROM batches_batchitem WHERE batch_id = %s LIMIT %s)
"""
_DELETE_DEAD_WORKERS = """
DELETE FROM batches_worker w WHERE w.seen_at < clock_timestamp() - make_interval(secs => %s)
AND NOT EXISTS (SELECT FROM batches_batchitem i WHERE i.state = 'running' AND i.worker_id = w.id)
"""


def tidy() -> None:
    end_finished()
    delete_expired_batches()
    remove_deleted_batches()
    IdempotencyKey.objects.stale().delete()
    forget_dead_workers()
    forget_expired(now=database_now())


def delete_expired_batches() -> None:
    """Marks as deleted what ended more than RELAY_BATCH_RETENTION_DAYS ago; unset keeps everything."""
    days = settings.RELAY_BATCH_RETENTION_DAYS
    if days is None:
        return
    old = Batch.objects.filter(deleted_at=None, ended_at__lt=Now() - timedelta(days=days))
    Batch.objects.filter(id__in=old.order_by("ended_at", "id").values("id")[: BATCHES_A_STEP * 10]).update(
        deleted_at=Now()
    )


def remove_deleted_batches() -> None:
    """Payloads first: whatever stops this in the middle, the row is still there to begin again from.

    Not while their volume is away: nobody would think of them when it is back.
    """
    deleted = Batch.objects.filter(deleted_at__isnull=False).order_by("deleted_at", "id")
    for batch_id in deleted.values_list("id", flat=True)[:BATCHES_A_STEP]:
        _remove(batch_id)


def remove_orphaned_payloads() -> None:
    """Folders of submissions that were never committed, told by the time in their names."""
    store = open_store()
    oldest_kept = database_milliseconds() - ORPHAN_SECONDS * 1000
    folders = {name: _batch_id(name) for name in store.folders()}
    old = {id_ for id_ in folders.values() if id_ and id_.int >> 80 < oldest_kept}
    known = set(Batch.objects.filter(id__in=old).values_list("id", flat=True))
    for batch_id in old - known:
        store.discard(batch_id)
        logger.info("removed payloads of a submission that was never stored", extra={"batch_id": batch_id})


def forget_dead_workers() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_DEAD_WORKERS, [settings.RELAY_WORKER_LOST_S])


def database_milliseconds() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        milliseconds: int = cursor.fetchone()[0]
    return milliseconds


def _remove(batch_id: uuid.UUID) -> None:
    try:
        # A folder that is not there is taken for one that was removed: its volume may be just coming or going.
        open_store().check()
        open_store().discard(batch_id)
        open_store().check()
    except (PayloadUnwritable, PayloadStoreUnavailable):
        logger.warning(
            "payloads could not be removed; the next sweep tries again", extra={"batch_id": batch_id}
        )
        return
    while _deleted_items(batch_id):
        pass
    forget_batch(batch_id)
    Batch.objects.filter(id=batch_id).delete()


def _deleted_items(batch_id: uuid.UUID) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_ITEMS, [batch_id, ITEMS_A_STEP])
        return int(cursor.rowcount)


def _batch_id(folder: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(hex=folder)
    except ValueError:
        return None
