"""The status of batches beyond their rows: counts, waiting reasons and usage, for one batch or a page of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batches.models import BatchItem
from batches.models.item import ItemCounts
from usage.totals import batch_totals

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping, Sequence

    from batches.models import Batch
    from usage.totals import Total


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """`counts`: items by state, only states that occur; `waiting`: waiting items by reason."""

    batch: Batch
    counts: Mapping[str, int]
    waiting: Mapping[str, int]
    usage: Total


def batch_statuses(batches: Sequence[Batch]) -> list[BatchStatus]:
    """Read the status of all of them in two queries. Call it within the `one_snapshot()` that read the rows."""
    counts = _item_counts(batches)
    totals = batch_totals(batch.id for batch in batches)
    return [
        BatchStatus(
            batch=batch,
            counts=counts[batch.id].by_state,
            waiting=counts[batch.id].waiting,
            usage=totals[batch.id],
        )
        for batch in batches
    ]


def batch_counts(batches: Sequence[Batch]) -> dict[uuid.UUID, Mapping[str, int]]:
    """Read the items by state of each. Those that have ended have theirs in their rows; one query for the others."""
    return {batch_id: counts.by_state for batch_id, counts in _item_counts(batches).items()}


def _item_counts(batches: Sequence[Batch]) -> dict[uuid.UUID, ItemCounts]:
    running = [batch.id for batch in batches if batch.final_counts is None]
    counts = BatchItem.objects.item_counts(running) if running else {}
    return counts | {
        batch.id: ItemCounts(batch.final_counts, waiting={})
        for batch in batches
        if batch.final_counts is not None
    }
