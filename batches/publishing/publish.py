"""Publishing what is due: a window of messages per owner, whatever the backlog (owner_window.py)."""

from __future__ import annotations

from functools import partial

from django.db import connection

from batches.publishing.broker import send_or_log
from batches.publishing.owner_window import mark_window_published
from batches.publishing.policy_pauses import DUE, NOT_PAUSED
from batches.publishing.publisher_thread import PublisherThread
from relaybatch.db.isolation import run_isolated
from routing.failpoints import failpoint

_OWNERS_WITH_DUE_ITEMS = f"""
SELECT DISTINCT b.owner_id FROM batches_batch b
WHERE b.ended_at IS NULL AND {NOT_PAUSED} AND EXISTS (SELECT FROM batches_batchitem i WHERE {DUE})
"""


def request_publish(owner_id: int) -> None:
    """Fill the owner's window in a moment, on the publisher thread: neither a response nor a slot waits for it."""
    _publisher_thread.request(owner_id)


def drain_publisher() -> None:
    """Publish what was requested and end the thread; a later request starts it again."""
    _publisher_thread.drain()


def publish_due(owner_id: int) -> int:
    """Fill the owner's window now; the number of messages sent. They are sent after the commit."""
    item_ids = mark_window_published(owner_id)
    failpoint("in_publish")
    return send_or_log(item_ids)


def publish_all_due() -> bool:
    """Fill every owner's window, as the sweeper does. False when that failed for some of them."""
    with connection.cursor() as cursor:
        cursor.execute(_OWNERS_WITH_DUE_ITEMS)
        owner_ids = [row[0] for row in cursor.fetchall()]
    published = [run_isolated("publish_owner", partial(publish_due, owner_id)) for owner_id in owner_ids]
    return all(published)


_publisher_thread = PublisherThread(publish_due)
