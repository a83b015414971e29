"""An owner's window: how many of its items may be published and unfinished, and which are published next.

Every owner has a window of the same size in one first-in-first-out queue, so that nobody's 50,000 items stand before
another's ten, and the broker holds at most owners times window messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from batches.models.item import IN_WINDOW_SQL
from batches.models.owner import LOCK_OWNER
from batches.publishing.policy_pauses import CONCURRENCY_LIMITED, DUE, NOT_PAUSED
from relaybatch.db.pipeline import execute_under_lock

if TYPE_CHECKING:
    import uuid

MIN_WINDOW_ITEMS = 16

# Published, unfinished items that an owner may have: by default twice the live slots.
_WINDOW = """coalesce(%(window)s::int, greatest(%(minimum)s, 2 * (
    SELECT coalesce(sum(slots), 0) FROM batches_worker
    WHERE seen_at >= clock_timestamp() - make_interval(secs => %(lost)s))))"""

# Oldest batch first, in the order of its items: those of a batch that were never published are always its end, and are
# counted as such (batches/models/item.py). Batches of a paused policy are skipped. It reads after the owner's
# lock, so that two publishers of one owner can't both fill the same room. The array keeps the plan to the primary key:
# behind a limit that is a subquery, the planner expects a tenth of the table. So does `num_nulls`: with `IS NULL`, a
# planner that has old statistics takes the index of due items, and walks over all of them.
_MARK_PUBLISHED = f"""
WITH room AS (
    SELECT greatest(0, {_WINDOW} - count(*)) AS items FROM batches_batchitem
    WHERE owner_id = %(owner)s AND {IN_WINDOW_SQL}
), limited AS MATERIALIZED ({CONCURRENCY_LIMITED}), due AS (
    SELECT i.id, i.batch_id, i.idx
    FROM batches_batch b LEFT JOIN limited ON limited.policy_id = b.policy_id CROSS JOIN LATERAL (
        SELECT i.id, i.batch_id, i.idx FROM batches_batchitem i WHERE {DUE}
        ORDER BY i.idx LIMIT least((SELECT items FROM room), limited.remaining)) i
    WHERE b.owner_id = %(owner)s AND b.ended_at IS NULL AND {NOT_PAUSED}
      AND (limited.batch_id IS NULL OR limited.batch_id = b.id)
    ORDER BY b.id, i.idx LIMIT (SELECT items FROM room)
), marked AS (
    UPDATE batches_batchitem SET published_at = (SELECT clock_timestamp())
    WHERE id = ANY(ARRAY(SELECT id FROM due)) AND state = 'available' AND num_nulls(published_at) = 1 RETURNING id
)
SELECT due.id FROM due JOIN marked USING (id) ORDER BY due.batch_id, due.idx
"""


def mark_window_published(owner_id: int) -> list[uuid.UUID]:
    """Mark as published the due items for which the owner's window has room; their ids, in the order to send them."""
    values = {
        "owner": owner_id,
        "window": settings.RELAY_BATCH_WINDOW,
        "minimum": MIN_WINDOW_ITEMS,
        "lost": settings.RELAY_WORKER_LOST_S,
    }
    rows = execute_under_lock(LOCK_OWNER, owner_id, (_MARK_PUBLISHED, values))
    return [row[0] for row in rows]
