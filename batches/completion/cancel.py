"""Cancelling a batch: waiting items become `cancelled` here; running ones are aborted by their worker
(batches/execution/abort_cancelled.py)."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from django.db import connection, transaction

from batches.completion.batch_end import lock_exclusive
from batches.completion.waiting_items import finish_waiting_items
from batches.publishing.publish import request_publish
from batches.states import ItemState

if TYPE_CHECKING:
    import uuid

    from batches.models import Batch

logger = logging.getLogger(__name__)

# A batch that has ended stays as it was, and a second cancel keeps the first one's time.
_MARK_CANCELLED = """
UPDATE batches_batch SET cancel_initiated_at = clock_timestamp()
WHERE id = %s AND ended_at IS NULL AND cancel_initiated_at IS NULL
"""


def cancel_batch(batch: Batch) -> bool:
    """Cancel what is not final; False when it was cancelled before, or has ended: then nothing changes."""
    with transaction.atomic():
        lock_exclusive(batch.id)
        marked = _mark_cancelled(batch.id)
        if marked:
            finish_waiting_items(batch.id, ItemState.CANCELLED)
            # The owner's other batches get the room that this one leaves in the window.
            transaction.on_commit(functools.partial(request_publish, batch.owner_id), robust=True)
    if marked:
        logger.info("batch cancelled", extra={"batch_id": batch.id})
    return marked


def _mark_cancelled(batch_id: uuid.UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_MARK_CANCELLED, [batch_id])
        return bool(cursor.rowcount == 1)
