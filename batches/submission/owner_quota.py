"""The owner's row: whose window and whose limit a batch counts against."""

from __future__ import annotations

from django.conf import settings
from django.db import connection, models

from batches.models import Batch, BatchItem, Owner
from batches.models.item import OPEN
from relaybatch.http.errors import TooManyRequests

# Not the stronger FOR UPDATE: that would wait for every submission in progress, whose new batch row holds a key-share
# lock on its owner.
LOCK_OWNER = "SELECT id FROM batches_owner WHERE id = %s FOR NO KEY UPDATE"


def get_or_create_owner(name: str) -> Owner:
    return Owner.objects.get_or_create(name=name)[0]


def lock_owner(owner_id: int) -> None:
    """Until the end of the transaction, nobody else publishes or adds items for this owner."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_OWNER, [owner_id])


def check_open_item_quota(owner_id: int, adding: int) -> None:
    """Raises TooManyRequests when `adding` more items would put the owner over RELAY_MAX_OPEN_ITEMS.

    The sum over open batches bounds the true number from above and costs nothing; only when it is over the limit
    are the items themselves counted.
    """
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
