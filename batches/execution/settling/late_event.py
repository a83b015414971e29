"""What a response that came too late has used: kept as a late usage event of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection, transaction

from usage.ledger import record
from usage.models import UsageEvent
from usage.totals import delete_batch_total

if TYPE_CHECKING:
    import uuid

    from batches.execution.claim import Claim
    from batches.execution.retry_policy import Settlement
    from usage.events import EventDraft


def record_late_usage(claim: Claim, settlement: Settlement) -> None:
    """Record the usage of an attempt whose item someone else has settled. Does nothing without usage.

    Safe to repeat: an event that was recorded by an earlier call is not recorded again.
    """
    event = settlement.event
    if event and event.has_usage and not UsageEvent.objects.filter(id=event.id).exists():
        _record(claim.batch_id, event.as_late())


def _record(batch_id: uuid.UUID, event: EventDraft) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Waits for a removal of the batch that is in progress.
            cursor.execute("SELECT FROM batches_batch WHERE id = %s FOR KEY SHARE", [batch_id])
            batch_exists = cursor.rowcount == 1
        record(event)
        if not batch_exists:
            # A removed batch has no total any more, and recording has just made one.
            delete_batch_total(batch_id)
