"""Deleting a batch: gone for its owner at once, removed by the sweeper in small steps. Usage events stay."""

from __future__ import annotations

from django.db.models.functions import Now

from batches.models import Batch
from relaybatch.http.errors import Conflict


def delete_batch(batch: Batch) -> None:
    """Raises Conflict while the batch has not ended."""
    deleted = Batch.objects.filter(id=batch.id, ended_at__isnull=False).update(deleted_at=Now())
    if not deleted:
        raise Conflict("This batch has not ended yet; cancel it, or wait for its end, then delete it.")
