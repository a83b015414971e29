"""The status of batches beyond their rows: counts, waiting reasons and usage, for one batch or a page of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batches.models import BatchItem
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
    """Read the status of all of them in three queries. Call it within the `one_snapshot()` that read the rows."""
    running = _running_ids(batches)
    counts = batch_counts(batches)
    waiting = BatchItem.objects.waiting_by_batch(running) if running else {}
    totals = batch_totals(batch.id for batch in batches)
    return [
        BatchStatus(
            batch=batch,
            counts=counts[batch.id],
            waiting=waiting.get(batch.id, {}),
            usage=totals[batch.id],
        )
        for batch in batches
    ]


def batch_counts(batches: Sequence[Batch]) -> dict[uuid.UUID, Mapping[str, int]]:
    """Read the items by state of each. Those that have ended have theirs in their rows; one query for the others."""
    running = _running_ids(batches)
    counts = BatchItem.objects.counts_by_batch(running) if running else {}
    return {
        batch.id: counts.get(batch.id, {}) if batch.final_counts is None else batch.final_counts
        for batch in batches
    }


def _running_ids(batches: Sequence[Batch]) -> list[uuid.UUID]:
    return [batch.id for batch in batches if not batch.ended_at]
