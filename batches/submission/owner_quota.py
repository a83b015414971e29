"""The quota of an owner: how many items that are not final it may have.

Whoever adds items shares the owner's quota lock and leaves room for all that it can't see (store_rows.py), or holds the
lock exclusively and checks after its own change.
"""

from __future__ import annotations

from typing import LiteralString

from django.conf import settings
from django.db import connection, models

from batches.models import Batch, BatchItem, Owner
from batches.models.item import OPEN
from relaybatch.http.errors import TooManyRequests

SHARE_QUOTA: LiteralString = "SELECT pg_advisory_xact_lock_shared(%s)"
_LOCK_QUOTA = "SELECT pg_advisory_xact_lock(%s)"
# An upper bound of the owner's open items, and how many sessions the server allows.
OPEN_ITEMS_BOUND: LiteralString = """
SELECT coalesce(sum(total_items), 0), current_setting('max_connections')::int FROM batches_batch
WHERE owner_id = %s AND ended_at IS NULL
"""
# Any constant of our own, above every id of an owner.
_FIRST_KEY = 0x51A7 << 48


def get_or_create_owner(name: str) -> Owner:
    return Owner.objects.get_or_create(name=name)[0]


def quota_key(owner_id: int) -> int:
    """The number of the advisory lock under which items are added for this owner."""
    return _FIRST_KEY + owner_id


def lock_quota(owner_id: int) -> None:
    """Lock the owner's quota until the transaction ends: nobody else adds items for this owner."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_QUOTA, [quota_key(owner_id)])


def check_open_item_quota(owner_id: int, adding: int) -> None:
    """Raise TooManyRequests when `adding` more items would put the owner over RELAY_MAX_OPEN_ITEMS."""
    # The sum over open batches is an upper bound and costs nothing; the items are counted only when it is too high.
    limit = settings.RELAY_MAX_OPEN_ITEMS
    open_batches = Batch.objects.open().filter(owner_id=owner_id)
    upper_bound = open_batches.aggregate(total=models.Sum("total_items"))["total"] or 0
    if upper_bound + adding <= limit:
        return
    if BatchItem.objects.filter(OPEN, owner_id=owner_id).count() + adding > limit:
        raise TooManyRequests(
            f"This submission would give you more than {limit} items that are not final; "
            "wait until earlier batches have ended, or cancel one.",
            code="too_many_open_items",
        )
