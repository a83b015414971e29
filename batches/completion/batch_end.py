"""The end of a batch, and the lock by which settling, cancelling and expiring agree on which transaction makes it.

Whoever makes items final either shares the batch's lock and has seen, after getting it, that another item is still
waiting; or holds it exclusively, and checks after its own change whether any item is open. So two last items settled at
the same moment can't miss each other, and no counter row makes thousands of settling transactions queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection, transaction

from batches.models.item import OPEN_SQL

if TYPE_CHECKING:
    import uuid

LOCK_EXCLUSIVE = "SELECT pg_advisory_xact_lock(%s)"

# Under the exclusive lock.
END_IF_COMPLETE = f"""
UPDATE batches_batch SET ended_at = clock_timestamp(), final_counts = (
    SELECT coalesce(jsonb_object_agg(state, n), '{{}}') FROM (
        SELECT state, count(*) AS n FROM batches_batchitem WHERE batch_id = %(batch)s GROUP BY state) AS counts)
WHERE id = %(batch)s AND ended_at IS NULL AND NOT EXISTS (
    SELECT FROM batches_batchitem WHERE batch_id = %(batch)s AND {OPEN_SQL})
"""


def lock_key(batch_id: uuid.UUID) -> int:
    """The random half of the id, as PostgreSQL's signed 64 bits."""
    return int.from_bytes(batch_id.bytes[8:], "big", signed=True)


def lock_exclusive(batch_id: uuid.UUID) -> None:
    """Lock the batch until the transaction ends: nobody else makes items of it final."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_EXCLUSIVE, [lock_key(batch_id)])


def end_if_complete(batch_id: uuid.UUID) -> bool:
    """End the batch when none of its items is open; True when this call did. Needs `lock_exclusive`."""
    with connection.cursor() as cursor:
        cursor.execute(END_IF_COMPLETE, {"batch": batch_id})
        return bool(cursor.rowcount)


def end_complete_batch(batch_id: uuid.UUID) -> None:
    """Lock the batch, and end it when none of its items is open."""
    with transaction.atomic():
        lock_exclusive(batch_id)
        end_if_complete(batch_id)
