"""Cancelling and expiring: what waits becomes final here; what runs is stopped by the worker that runs it."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from django.db import connection, transaction

from batches.completion.batch_end import end_if_complete, lock_exclusive
from batches.models import ItemState
from batches.publishing.publish import request_publish

if TYPE_CHECKING:
    import uuid

    from batches.models import Batch

logger = logging.getLogger(__name__)

_FINISH_WAITING = """
UPDATE batches_batchitem SET state = %(state)s, finished_at = clock_timestamp(), published_at = NULL,
    not_before = NULL, waiting_reason = '', error_code = %(state)s, error = '', upstream_status = NULL,
    upstream_error = NULL
WHERE batch_id = %(batch)s AND state = 'available'
"""
# A batch that has ended stays as it was, and a second cancel leaves the first one's time.
_MARK_CANCELLED = """
UPDATE batches_batch SET cancel_initiated_at = clock_timestamp()
WHERE id = %s AND ended_at IS NULL AND cancel_initiated_at IS NULL
"""


def cancel_batch(batch: Batch) -> None:
    """Cancels what is not final. Safe to call again, and after the end: nothing changes then."""
    with transaction.atomic():
        lock_exclusive(batch.id)
        with connection.cursor() as cursor:
            cursor.execute(_MARK_CANCELLED, [batch.id])
            marked = cursor.rowcount == 1
        if marked:
            finish_waiting_items(batch.id, ItemState.CANCELLED)
            # The owner's other batches get the places that this one leaves.
            transaction.on_commit(functools.partial(request_publish, batch.owner_id), robust=True)
    if marked:
        logger.info("batch cancelled", extra={"batch_id": batch.id})


def expire_batch(batch_id: uuid.UUID) -> None:
    """Expires what has not started. Running items finish. Safe to call again. The sweep publishes what comes next."""
    with transaction.atomic():
        lock_exclusive(batch_id)
        finish_waiting_items(batch_id, ItemState.EXPIRED)


def finish_waiting_items(batch_id: uuid.UUID, state: ItemState) -> None:
    """Makes every waiting item final, and the batch ended if none runs. Needs `lock_alone`."""
    with connection.cursor() as cursor:
        cursor.execute(_FINISH_WAITING, {"state": state.value, "batch": batch_id})
    end_if_complete(batch_id)
