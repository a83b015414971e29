"""Lost messages: items that are marked as published, and whose message the queue no longer holds."""

from __future__ import annotations

import logging

from django.db import connection

from batches.models.item import PUBLISHED_SQL
from batches.publishing.broker import BROKER_ERRORS, error_name, queue_length, send_or_log

logger = logging.getLogger(__name__)

# In the order in which they were published; those of one window, which have one time, in that of their ids. The queue
# is first in, first out: when it holds fewer messages than items wait in it, the oldest are missing
# (lost, or fetched by a worker that has no free slot yet; the claim sorts out the double).
_MARK_LOST = f"""
WITH waiting AS (
    SELECT id, published_at, count(*) OVER () AS total FROM batches_batchitem WHERE {PUBLISHED_SQL}
), lost AS (
    SELECT id, published_at FROM waiting WHERE published_at < clock_timestamp() - interval '2 seconds'
    ORDER BY published_at, id LIMIT (SELECT greatest(0, coalesce(max(total), 0) - %(queued)s) FROM waiting)
), marked AS (
    UPDATE batches_batchitem SET published_at = (SELECT clock_timestamp())
    WHERE id = ANY(ARRAY(SELECT id FROM lost)) AND {PUBLISHED_SQL} RETURNING id
)
SELECT lost.id FROM lost JOIN marked USING (id) ORDER BY lost.published_at, lost.id
"""


def publish_lost() -> int:
    """Publish again what the queue has lost; the number of messages sent.

    The queue grows to the number of items that wait in it and no further, however often this runs.
    """
    try:
        queued = queue_length()
    except BROKER_ERRORS as error:
        logger.warning("broker unavailable", extra={"reason": error_name(error)})
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_MARK_LOST, {"queued": queued})
        return send_or_log([row[0] for row in cursor.fetchall()])
