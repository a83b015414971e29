"""Deleting a batch: gone for its owner at once, removed by the sweeper in small steps. Usage events stay."""

from __future__ import annotations

from django.db.models.functions import Now

from batches.completion.require_ended import not_ended
from batches.models import Batch
from batches.models.batch import FINALIZING


def delete_batch(batch: Batch) -> None:
    """Mark the batch as deleted. Raises Conflict while it has not ended, or its files are being written."""
    # One conditional UPDATE: the batch may end at this moment.
    ended = Batch.objects.filter(id=batch.id, ended_at__isnull=False).exclude(FINALIZING)
    deleted = ended.update(deleted_at=Now())
    if not deleted:
        raise not_ended(batch, then="cancel it, or wait for its end, then delete it")
