"""What a cancel does to running items: each worker aborts the calls of its own ones, within two seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from batches.states import ItemState
from relaybatch.db.pipeline import execute_prepared
from routing.calls.failures import FailureCode
from routing.ttl_cache import TtlCache

if TYPE_CHECKING:
    import uuid

    from batches.execution.in_flight import InFlightItems

_CANCELLED = """
SELECT i.id FROM batches_batchitem i JOIN batches_batch b ON b.id = i.batch_id
WHERE i.id = ANY(%s) AND i.state = 'running' AND i.worker_id = %s AND b.cancel_initiated_at IS NOT NULL
"""


# Short beside the two seconds in which a cancel reaches running items, and one query serves all items of a batch.
_over: TtlCache[uuid.UUID, ItemState | None] = TtlCache(seconds=0.05)
_OVER = """
SELECT CASE WHEN cancel_initiated_at IS NOT NULL THEN %s WHEN expires_at <= clock_timestamp() THEN %s END
FROM batches_batch WHERE id = %s
"""


def batch_over(batch_id: uuid.UUID) -> ItemState | None:
    """What becomes of the batch's items that were not sent, as of 50 ms ago at most: cancelled, expired, or None."""
    return _over.get(batch_id, lambda: _load_over(batch_id))


def _load_over(batch_id: uuid.UUID) -> ItemState | None:
    rows = execute_prepared(_OVER, [ItemState.CANCELLED.value, ItemState.EXPIRED.value, batch_id])
    return ItemState(rows[0][0]) if rows and rows[0][0] else None


def abort_cancelled_items(in_flight: InFlightItems) -> None:
    """Abort the calls of this worker whose batch was cancelled. The attempt then settles as `cancelled`."""
    running = [item.claim.item_id for item in in_flight.tracked()]
    if running:
        in_flight.abort(_cancelled_among(running, worker_id=in_flight.worker_id), FailureCode.CANCELLED)


def _cancelled_among(item_ids: list[uuid.UUID], *, worker_id: uuid.UUID) -> set[uuid.UUID]:
    with connection.cursor() as cursor:
        cursor.execute(_CANCELLED, [item_ids, worker_id])
        return {row[0] for row in cursor.fetchall()}
