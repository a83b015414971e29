"""Expiring a batch: waiting items become `expired`; running items finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from batches.completion.batch_end import lock_exclusive
from batches.completion.waiting_items import finish_waiting_items
from batches.states import ItemState

if TYPE_CHECKING:
    import uuid


def expire_batch(batch_id: uuid.UUID) -> None:
    """Expire what has not started. Safe to repeat. The sweep, which calls this, publishes what comes next."""
    with transaction.atomic():
        lock_exclusive(batch_id)
        finish_waiting_items(batch_id, ItemState.EXPIRED)
