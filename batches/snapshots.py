"""What a batch's row does not say itself: counts, waiting reasons and usage, for one batch or a page of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batches.models import Batch, BatchItem, ItemState
from usage.totals import batch_totals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from usage.totals import Total


OPEN_STATES = frozenset({ItemState.AVAILABLE, ItemState.RUNNING})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`counts`: items by state, only states that occur; `waiting`: by reason.

    Each sums up one instant's rows, `waiting` a moment after `counts`. A batch whose items are all final has ended.
    """

    batch: Batch
    counts: Mapping[str, int]
    waiting: Mapping[str, int]
    usage: Total


def snapshots_of(batches: Sequence[Batch]) -> list[Snapshot]:
    """Three queries for all of them; the counts of those that have ended are in their rows."""
    running = [batch.id for batch in batches if not batch.ended_at]
    counts = BatchItem.objects.counts_by_batch(running) if running else {}
    _read_ends(
        [batch for batch in batches if batch.id in counts and not OPEN_STATES & counts[batch.id].keys()]
    )
    waiting = BatchItem.objects.waiting_by_batch(running) if running else {}
    totals = batch_totals(batch.id for batch in batches)
    return [
        Snapshot(
            batch=batch,
            counts=counts.get(batch.id, {}) if batch.final_counts is None else batch.final_counts,
            waiting=waiting.get(batch.id, {}),
            usage=totals[batch.id],
        )
        for batch in batches
    ]


def _read_ends(batches: Sequence[Batch]) -> None:
    """Of batches whose last item became final after their rows were read. Its transaction set the end as well."""
    if batches:
        ends = Batch.objects.in_bulk([batch.id for batch in batches])
        for batch in batches:
            if end := ends.get(batch.id):
                batch.ended_at, batch.final_counts = end.ended_at, end.final_counts
                batch.cancel_initiated_at = end.cancel_initiated_at
