"""The status of batches beyond their rows: counts, waiting reasons and usage, for one batch or a page of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batches.models import BatchItem
from usage.totals import batch_totals

if TYPE_CHECKING:
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
    """Read the status of all of them in three queries. Call it within the `one_snapshot()` that read the rows.

    The counts of those that have ended are in their rows.
    """
    running = [batch.id for batch in batches if not batch.ended_at]
    counts = BatchItem.objects.counts_by_batch(running) if running else {}
    waiting = BatchItem.objects.waiting_by_batch(running) if running else {}
    totals = batch_totals(batch.id for batch in batches)
    return [
        BatchStatus(
            batch=batch,
            counts=counts.get(batch.id, {}) if batch.final_counts is None else batch.final_counts,
            waiting=waiting.get(batch.id, {}),
            usage=totals[batch.id],
        )
        for batch in batches
    ]
