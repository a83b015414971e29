"""Cleanup: removing what is no longer needed, in steps small enough to hold no lock for long. Safe to repeat."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from batches.files.remove import FileRemoval
from batches.models import Batch, IdempotencyKey, KeylessCreate
from batches.models.batch import FINALIZING
from batches.payloads import PayloadStoreUnavailable, PayloadWriteError, open_store
from batches.sweeper.sweep import end_complete_batches
from relaybatch.db.clock import database_now
from relaybatch.db.isolation import repeat_for_seconds, run_isolated
from routing.credentials.tokens import delete_expired_tokens
from usage.totals import delete_batch_total

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

logger = logging.getLogger(__name__)

BATCHES_PER_STEP = 20
MAX_SECONDS = 5.0
ITEMS_PER_STEP = 5000

# The array keeps the plan to the responses' primary key, however many there are of other batches.
_DELETE_ITEMS = """
WITH items AS (
    DELETE FROM batches_batchitem WHERE id IN (SELECT id FROM batches_batchitem WHERE batch_id = %s LIMIT %s)
    RETURNING id
), responses AS (DELETE FROM batches_itemresponse WHERE item_id = ANY(ARRAY(SELECT id FROM items)))
SELECT count(*) FROM items
"""
_DELETE_LOST_WORKERS = """
DELETE FROM batches_worker w WHERE w.seen_at < clock_timestamp() - make_interval(secs => %s)
AND NOT EXISTS (SELECT FROM batches_batchitem i WHERE i.state = 'running' AND i.worker_id = w.id)
"""


class Cleanup:
    """Each `run` does a bounded part of everything. What cannot be removed is skipped until the next round."""

    def __init__(self) -> None:
        self._deleted_after: tuple[datetime | None, uuid.UUID] | None = None
        self._file_removal = FileRemoval()

    def run(self) -> None:
        run_isolated("end_complete_batches", end_complete_batches)
        run_isolated("delete_expired_batches", delete_expired_batches)
        run_isolated(
            "remove_deleted_batches", partial(repeat_for_seconds, self._remove_some_batches, MAX_SECONDS)
        )
        run_isolated("remove_deleted_files", self._file_removal.run)
        run_isolated("delete_idempotency_keys", IdempotencyKey.objects.expired().delete)
        run_isolated("delete_keyless_creates", KeylessCreate.objects.expired().delete)
        run_isolated("delete_lost_workers", delete_lost_workers)
        run_isolated("delete_expired_tokens", _delete_expired_tokens)

    def _remove_some_batches(self) -> bool:
        """Return whether there may be more."""
        step = list(Batch.objects.deleted(after=self._deleted_after)[:BATCHES_PER_STEP])
        for _, batch_id in step:
            run_isolated("remove_batch", partial(_remove_batch, batch_id), batch_id=batch_id)
        self._deleted_after = step[-1] if len(step) == BATCHES_PER_STEP else None
        return self._deleted_after is not None


def delete_expired_batches() -> None:
    """Mark as deleted what ended more than RELAY_BATCH_RETENTION_DAYS ago; unset keeps everything."""
    days = settings.RELAY_BATCH_RETENTION_DAYS
    if days is None:
        return
    old = Batch.objects.filter(deleted_at=None, ended_at__lt=Now() - timedelta(days=days)).exclude(FINALIZING)
    step = old.order_by("ended_at", "id").values("id")[: BATCHES_PER_STEP * 10]
    Batch.objects.filter(id__in=step).update(deleted_at=Now())


def delete_lost_workers() -> None:
    """Delete the rows of lost workers, but those that still have running items to reclaim."""
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_LOST_WORKERS, [settings.RELAY_WORKER_LOST_S])


def _delete_expired_tokens() -> None:
    delete_expired_tokens(now=database_now())


def _remove_batch(batch_id: uuid.UUID) -> None:
    """Remove payloads, items with their responses, and row, in this order.

    Whatever interrupts this, the row is there to begin again from.

    Does nothing while the payload store is unavailable: nobody would think of the payloads when it is back.
    """
    try:
        # A missing folder counts as removed. Checked before and after: the store's volume may be mounted or unmounted
        # at this moment.
        open_store().check()
        open_store().discard(batch_id)
        open_store().check()
    except (PayloadWriteError, PayloadStoreUnavailable) as error:
        logger.warning("payloads not removed", extra={"batch_id": batch_id, "reason": str(error)})
        return
    while _delete_some_items(batch_id):
        pass
    # A worker that records a late event of the batch locks its row meanwhile.
    with transaction.atomic():
        Batch.objects.filter(id=batch_id).delete()
        delete_batch_total(batch_id)


def _delete_some_items(batch_id: uuid.UUID) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_ITEMS, [batch_id, ITEMS_PER_STEP])
        return int(cursor.fetchone()[0])
