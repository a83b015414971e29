"""Read running totals: a few rows for each scope, however many events it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.conf import settings

from routing.meters import METERS
from usage.models import UsageEvent, UsageTotal
from usage.reporting.serializers import tokens_json

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """`unpriced`: how many events have no price; `cost_nanos` is the sum of the others."""

    currency: str
    requests: int = 0
    tokens: Mapping[str, int] = field(default_factory=lambda: tokens_json({}))
    cost_nanos: int = 0
    unpriced: int = 0


def batch_totals(batch_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Total]:
    """The total of every batch, also of one without events. One query."""
    scopes = {f"batch:{batch_id}": batch_id for batch_id in batch_ids}
    totals = {batch_id: Total(currency=settings.RELAY_CURRENCY) for batch_id in scopes.values()}
    for scope, sums in UsageTotal.objects.totals_by_scope(scopes).items():
        totals[scopes[scope]] = Total(
            currency=settings.RELAY_CURRENCY,
            requests=sums["requests"],
            tokens=tokens_json(sums),
            cost_nanos=sums["cost_nanos"],
            unpriced=sums["unpriced"],
        )
    return totals


def item_totals(batch_id: uuid.UUID, *, first_idx: int, last_idx: int) -> dict[int, Total]:
    """`{idx: total}` of the items that have events. One query."""
    rows = UsageEvent.objects.totals_by_item(batch_id, first_idx=first_idx, last_idx=last_idx)
    return {
        row["item_idx"]: Total(
            currency=settings.RELAY_CURRENCY,
            requests=row["requests"],
            tokens=tokens_json({meter: row[f"sum_{meter}"] for meter in METERS}),
            cost_nanos=row["cost"] or 0,
            unpriced=row["unpriced"],
        )
        for row in rows
    }


def delete_batch_total(batch_id: uuid.UUID) -> None:
    """Delete the total of a deleted batch. Its events and its project's total stay."""
    UsageTotal.objects.filter(scope=f"batch:{batch_id}").delete()
