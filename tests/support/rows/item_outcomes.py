"""Outcomes of items without a worker: rows and stored answers as a worker would leave them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django.db.models.functions import Now

from batches.models import BatchItem, ItemResponse
from batches.payloads import open_store

if TYPE_CHECKING:
    from batches.models import Batch


def complete(batch: Batch, idx: int, response: bytes | None) -> None:
    """With None, the answer is said to be stored and is not there."""
    if response is not None:
        open_store().put_response(batch.id, idx=idx, claim_no=1, body=response)
    _set(batch, idx, state="completed", claim_no=1, response_length=len(response or b""))


def complete_inline(batch: Batch, idx: int, response: bytes) -> None:
    """The answer is small: a row beside its item's."""
    item = BatchItem.objects.get(batch=batch, idx=idx)
    ItemResponse.objects.create(item_id=item.id, body=response)
    _set(batch, idx, state="completed", claim_no=1, response_length=len(response))


def discard(batch: Batch, idx: int, *, error_code: str, error: str, **fields: Any) -> None:
    _set(batch, idx, state="discarded", error_code=error_code, error=error, **fields)


def end(batch: Batch) -> None:
    """Sets the end as the last item's transaction does."""
    batch.final_counts = grouped_counts(batch)
    batch.ended_at = Now()
    batch.save(update_fields=["final_counts", "ended_at"])
    batch.refresh_from_db()


def grouped_counts(batch: Batch) -> dict[str, int]:
    """Count the batch's rows by state, each of them."""
    return Counter(BatchItem.objects.filter(batch=batch).values_list("state", flat=True))


def _set(batch: Batch, idx: int, **fields: Any) -> None:
    changed = BatchItem.objects.filter(batch=batch, idx=idx).update(finished_at=Now(), **fields)
    assert changed == 1
