"""Publishing: a window of messages per owner, whatever the backlog.

Every owner has the same window in one first-in-first-out queue, so that nobody's 50,000 items stand before another's
ten, and the broker holds at most owners times window messages.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection

from batches.models.owner_lock import LOCK_OWNER
from batches.publishing import broker
from batches.publishing.broker import BROKER_ERRORS
from batches.publishing.policy_pauses import CONCURRENCY_LIMITED, DUE, NOT_PAUSED
from batches.publishing.publisher_thread import PublisherThread
from relaybatch.db.isolation import run_isolated
from relaybatch.db.pipeline import execute_under_lock
from routing.failpoints import failpoint

if TYPE_CHECKING:
    import uuid

logger = logging.getLogger(__name__)

MIN_WINDOW_ITEMS = 16

# Published, unfinished items that an owner may have: by default twice the live slots.
_WINDOW = """coalesce(%(window)s::int, greatest(%(smallest)s, 2 * (
    SELECT coalesce(sum(slots), 0) FROM batches_worker
    WHERE seen_at >= clock_timestamp() - make_interval(secs => %(lost)s))))"""

# Oldest batch first, in the order of its items; batches of a policy that is paused are passed over whole. It reads
# after the owner's lock, so that two publishers of one owner can't both fill the same room. The array keeps the
# plan to the primary key: behind a limit that is a subquery, the planner expects a tenth of the table.
_MARK_DUE = f"""
WITH room AS (
    SELECT greatest(0, {_WINDOW} - count(*)) AS items FROM batches_batchitem
    WHERE owner_id = %(owner)s AND (state = 'running' OR (state = 'available' AND published_at IS NOT NULL))
), crowded AS MATERIALIZED ({CONCURRENCY_LIMITED}), due AS (
    SELECT i.id, i.batch_id, i.idx
    FROM batches_batch b LEFT JOIN crowded ON crowded.policy_id = b.policy_id CROSS JOIN LATERAL (
        SELECT i.id, i.batch_id, i.idx FROM batches_batchitem i WHERE {DUE}
        ORDER BY i.idx LIMIT least((SELECT items FROM room), crowded.places)) i
    WHERE b.owner_id = %(owner)s AND b.ended_at IS NULL AND {NOT_PAUSED}
      AND (crowded.batch_id IS NULL OR crowded.batch_id = b.id)
    ORDER BY b.id, i.idx LIMIT (SELECT items FROM room)
), marked AS (
    UPDATE batches_batchitem SET published_at = (SELECT clock_timestamp())
    WHERE id = ANY(ARRAY(SELECT id FROM due)) AND state = 'available' AND published_at IS NULL RETURNING id
)
SELECT due.id FROM due JOIN marked USING (id) ORDER BY due.batch_id, due.idx
"""

_OWNERS_WITH_DUE_ITEMS = f"""
SELECT DISTINCT b.owner_id FROM batches_batch b
WHERE b.ended_at IS NULL AND {NOT_PAUSED} AND EXISTS (SELECT FROM batches_batchitem i WHERE {DUE})
"""

# In the order in which they were published; those of one window, which have one time, in that of their ids. The queue
# is first in, first out: when it holds fewer messages than items wait in it, the oldest are missing
# (lost, or fetched by a worker that has no free slot yet; the claim sorts out the double).
_MARK_LOST = """
WITH waiting AS (
    SELECT id, published_at, count(*) OVER () AS total FROM batches_batchitem
    WHERE state = 'available' AND published_at IS NOT NULL
), lost AS (
    SELECT id, published_at FROM waiting WHERE published_at < clock_timestamp() - interval '2 seconds'
    ORDER BY published_at, id LIMIT (SELECT greatest(0, coalesce(max(total), 0) - %(queued)s) FROM waiting)
), marked AS (
    UPDATE batches_batchitem SET published_at = (SELECT clock_timestamp())
    WHERE id = ANY(ARRAY(SELECT id FROM lost)) AND state = 'available' AND published_at IS NOT NULL RETURNING id
)
SELECT lost.id FROM lost JOIN marked USING (id) ORDER BY lost.published_at, lost.id
"""


def request_publish(owner_id: int) -> None:
    """Fills the owner's window in a moment, on a thread of its own: neither an answer nor a slot waits for it."""
    _publisher_thread.request(owner_id)


def drain_publisher() -> None:
    """Publishes what was asked for and ends the thread; a later request starts it again."""
    _publisher_thread.drain()


def publish_due(owner_id: int) -> int:
    """Fills the owner's window now; the number of items published. The messages go out after the commit."""
    values = {
        "owner": owner_id,
        "window": settings.RELAY_BATCH_WINDOW,
        "smallest": MIN_WINDOW_ITEMS,
        "lost": settings.RELAY_WORKER_LOST_S,
    }
    marked = execute_under_lock(LOCK_OWNER, owner_id, _MARK_DUE, values, prepare=False)
    failpoint("in_publish")
    return _send([row[0] for row in marked])


def publish_all_due() -> bool:
    """Fills every owner's window, as the sweeper does. False when that went wrong for some of them."""
    with connection.cursor() as cursor:
        cursor.execute(_OWNERS_WITH_DUE_ITEMS)
        owner_ids = [row[0] for row in cursor.fetchall()]
    published = [
        run_isolated("publishing for an owner", partial(publish_due, owner_id), owner_id=owner_id)
        for owner_id in owner_ids
    ]
    return all(published)


def publish_lost() -> int:
    """Publishes again what the queue has lost; the number of messages sent.

    The queue grows to the number of items that wait in it and no further, however often this runs.
    """
    try:
        queued = broker.queue_length()
    except BROKER_ERRORS as error:
        logger.warning("the broker is away (%s): lost messages are published later", _error_name(error))
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_MARK_LOST, {"queued": queued})
        return _send([row[0] for row in cursor.fetchall()])


def _send(item_ids: list[uuid.UUID]) -> int:
    """A message that could not be sent counts as lost, and the sweeper finds it."""
    if not item_ids:
        return 0
    try:
        broker.send_messages(item_ids)
    except BROKER_ERRORS as error:
        logger.warning(
            "the broker is away (%s): %d items are published later", _error_name(error), len(item_ids)
        )
        return 0
    return len(item_ids)


def _error_name(error: Exception) -> str:
    """Of kombu's own classes, none says what Redis answered."""
    return type(error.__cause__ or error).__name__


_publisher_thread = PublisherThread(publish_due)
