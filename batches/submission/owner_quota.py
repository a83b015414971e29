"""The quota of an owner: how many items that are not final it may have."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from batches.models import Batch, BatchItem, Owner
from batches.models.item import OPEN
from relaybatch.http.errors import TooManyRequests


def get_or_create_owner(name: str) -> Owner:
    return Owner.objects.get_or_create(name=name)[0]


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
