"""Usage events as JSON, and as rows of a CSV file."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, structs

from relaybatch.http.timestamps import Timestamp, format_time
from routing.meters import METERS, WHOLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from usage.models import UsageEvent

CSV_FIELDS = (
    *("id", "at", "owner", "late", "currency", "source", "batch_id", "item_idx", "custom_id", "attempt"),
    *("status", "error_kind", "duration_ms", "upstream_ms", "keys_tried", "requested_model", "model"),
    *("provider", "host", "host_key", "adapter", "policy", "project", "team", "principal_kind"),
    *("principal_id", "credential_kind", "credential_id", *METERS, "cost_nanos", "upstream_cost_nanos"),
    *("cost_breakdown", "pricing"),
)
# Beginnings that a spreadsheet takes for a formula, or skips before one.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")

Tokens: TypeAlias = Annotated[
    dict[str, int],
    Meta(
        description="By meter: input, cache_read, cache_write and output always, their parts where there are any."
    ),
]


class UsageEventObject(Struct, frozen=True, kw_only=True):
    """One attempt. `tokens`, `cost_nanos` and `upstream_cost_nanos` are null where they are unknown, which is not 0."""

    id: str
    owner: str
    late: bool
    currency: str
    source: Literal["batch", "live"]
    at: Timestamp
    batch_id: str | None
    item_idx: int | None
    custom_id: str | None
    attempt: int
    status: Annotated[int, Meta(description="The upstream's HTTP status; 0 = it did not answer.")]
    error_kind: Annotated[str, Meta(description="The failure code; empty = the attempt succeeded.")]
    duration_ms: int
    upstream_ms: int
    keys_tried: int
    requested_model: str
    model: str
    provider: str
    host: str
    host_key: str
    adapter: str
    policy: str
    project: str
    team: str
    principal_kind: str
    principal_id: str
    credential_kind: str
    credential_id: str
    tokens: Tokens | None
    cost_nanos: int | None
    upstream_cost_nanos: int | None
    cost_breakdown: Annotated[dict[str, int], Meta(description="Nano-units by meter.")]
    pricing: str


# Members that are columns of the same name.
_COLUMNS = tuple(
    name for name in UsageEventObject.__struct_fields__ if name not in ("id", "at", "batch_id", "tokens")
)


class UsageEventList(Struct, frozen=True, kw_only=True):
    """A page of events, newest first."""

    events: list[UsageEventObject]
    next_cursor: str | None


def tokens_json(counts: Mapping[str, int | None]) -> dict[str, int]:
    """`{meter: count}`: always the four meters, their parts only where they are not 0."""
    known = {meter: int(counts.get(meter) or 0) for meter in METERS}
    return {meter: count for meter, count in known.items() if count or meter in WHOLES}


def event_object(event: UsageEvent) -> UsageEventObject:
    counts = {meter: getattr(event, meter) for meter in METERS}
    return UsageEventObject(
        id=str(event.id),
        at=format_time(event.at),
        batch_id=event.public_batch_id or None,
        tokens=None if event.input is None else tokens_json(counts),
        **{name: getattr(event, name) for name in _COLUMNS},
    )


def csv_lines(pages: Iterable[Iterable[UsageEvent]]) -> Iterator[str]:
    """Yield a header, then the rows page by page, so that memory holds one page."""
    yield _write_csv([CSV_FIELDS])
    for page in pages:
        yield _write_csv(_csv_row(event) for event in page)


def _write_csv(rows: Iterable[Iterable[Any]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()


def _csv_row(event: UsageEvent) -> list[Any]:
    """The cells of one event. Tokens have a column for each meter; unknown counts are empty."""
    meters = {meter: getattr(event, meter) for meter in METERS}
    values = structs.asdict(event_object(event)) | meters
    values["cost_breakdown"] = json.dumps(event.cost_breakdown)
    return [_safe_cell(values[name]) for name in CSV_FIELDS]


def _safe_cell(value: object) -> object:
    """Quote a text that a spreadsheet would run as a formula: callers choose texts, and operators open the file."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
