"""Events as callers see them: JSON, and rows of a CSV file."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC
from typing import TYPE_CHECKING, Any

from routing.meters import METERS, WHOLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from usage.models import UsageEvent

CSV_FIELDS = (
    *("id", "at", "owner", "late", "currency", "source", "batch_id", "item_idx", "custom_id", "attempt"),
    *("status", "error_kind", "duration_ms", "upstream_ms", "keys_tried", "requested_model", "model"),
    *("provider", "host", "host_key", "adapter", "policy", "project", "team", "principal_kind"),
    *("principal_id", "credential_kind", "credential_id", *METERS, "cost_nanos", "upstream_cost_nanos"),
    *("cost_breakdown", "pricing"),
)
# What a spreadsheet would take for a formula, and what it may skip before one.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def format_time(at: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_optional_time(at: datetime | None) -> str | None:
    return format_time(at) if at else None


def tokens_json(counts: Mapping[str, int | None]) -> dict[str, int]:
    """`{meter: count}`: the four meters always, a part of one only where there is any."""
    known = {meter: int(counts.get(meter) or 0) for meter in METERS}
    return {meter: count for meter, count in known.items() if count or meter in WHOLES}


def event_json(event: UsageEvent) -> dict[str, Any]:
    """`tokens`, `cost_nanos` and `upstream_cost_nanos` are null where they are unknown, which is not 0."""
    counts = {meter: getattr(event, meter) for meter in METERS}
    return {
        "id": str(event.id),
        "owner": event.owner,
        "late": event.late,
        "currency": event.currency,
        "source": event.source,
        "at": format_time(event.at),
        "batch_id": event.public_batch_id or None,
        "item_idx": event.item_idx,
        "custom_id": event.custom_id,
        "attempt": event.attempt,
        "status": event.status,
        "error_kind": event.error_kind,
        "duration_ms": event.duration_ms,
        "upstream_ms": event.upstream_ms,
        "keys_tried": event.keys_tried,
        "requested_model": event.requested_model,
        "model": event.model,
        "provider": event.provider,
        "host": event.host,
        "host_key": event.host_key,
        "adapter": event.adapter,
        "policy": event.policy,
        "project": event.project,
        "team": event.team,
        "principal_kind": event.principal_kind,
        "principal_id": event.principal_id,
        "credential_kind": event.credential_kind,
        "credential_id": event.credential_id,
        "tokens": None if event.input is None else tokens_json(counts),
        "cost_nanos": event.cost_nanos,
        "upstream_cost_nanos": event.upstream_cost_nanos,
        "cost_breakdown": event.cost_breakdown,
        "pricing": event.pricing,
    }


def csv_lines(pages: Iterable[Iterable[UsageEvent]]) -> Iterator[str]:
    """A header, then the rows page by page: memory holds one page, however many there are."""
    yield _write_csv([CSV_FIELDS])
    for page in pages:
        yield _write_csv(_csv_row(event) for event in page)


def _write_csv(rows: Iterable[Iterable[Any]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()


def _csv_row(event: UsageEvent) -> list[Any]:
    """Token counts in a column a meter; unknown ones are empty."""
    values = event_json(event) | {meter: getattr(event, meter) for meter in METERS}
    values["cost_breakdown"] = json.dumps(event.cost_breakdown)
    return [_safe_cell(values[name]) for name in CSV_FIELDS]


def _safe_cell(value: object) -> object:
    """Callers choose some of these texts, and somebody else's spreadsheet opens them."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
