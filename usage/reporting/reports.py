"""Summaries and time series of events, as the usage routes answer them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Meta, Struct, field

from relaybatch.http.errors import InvalidRequest
from relaybatch.http.timestamps import Timestamp, format_optional_time, format_time
from routing.meters import METERS
from usage.reporting.queries import COLUMN_BY_GROUP
from usage.reporting.serializers import Tokens, tokens_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from usage.models import UsageEventQuerySet
    from usage.reporting.queries import ReportQuery

MAX_ROWS = 10_000

Group: TypeAlias = Annotated[dict[str, str | int | None], Meta(description="By the names of `group_by`.")]


class Durations(Struct, frozen=True, kw_only=True):
    """Milliseconds of the requests; null where there are none."""

    avg: float | None
    p50: int | None
    p95: int | None
    max: int | None


class UsageSummaryRow(Struct, frozen=True, kw_only=True):
    """What the events of one group add up to. Late answers add cost, and no requests."""

    group: Group
    requests: int
    errors: int
    tokens: Tokens
    cost_nanos: Annotated[int, Meta(description="Of the events that have a price.")]
    unpriced: Annotated[int, Meta(description="How many events have none.")]
    duration_ms: Durations


class UsageSummary(Struct, frozen=True, kw_only=True):
    """One row a group, the most expensive first. `from` is null where nothing limits it."""

    rows: list[UsageSummaryRow]
    start: Timestamp | None = field(name="from")
    end: Timestamp = field(name="to")


class UsagePoint(Struct, frozen=True, kw_only=True):
    """What the events of one interval add up to; `at` is its beginning."""

    at: Timestamp
    requests: int
    errors: int
    tokens: Tokens
    cost_nanos: int
    unpriced: int
    duration_ms: Durations


class UsageSeries(Struct, frozen=True, kw_only=True):
    group: Group
    points: list[UsagePoint]


class UsageTimeseries(Struct, frozen=True, kw_only=True):
    """One row a group, with its points oldest first. An interval without events has no point."""

    rows: list[UsageSeries]
    start: Timestamp | None = field(name="from")
    end: Timestamp = field(name="to")


def summary(events: UsageEventQuerySet, *, query: ReportQuery) -> UsageSummary:
    """Without groups there is one row, also of no events."""
    matching = events.matching(query.filter)
    columns = [COLUMN_BY_GROUP[name] for name in query.groups]
    found = matching.totals_by_group(columns, limit=MAX_ROWS + 1) if columns else [matching.totals()]
    rows = [UsageSummaryRow(group=_group(row, query), **_totals(row)) for row in _limit_rows(found)]
    return UsageSummary(rows=rows, start=format_optional_time(query.start), end=format_time(query.end))


def timeseries(events: UsageEventQuerySet, *, query: ReportQuery) -> UsageTimeseries:
    """Without groups there is one row, also of no events."""
    columns = [COLUMN_BY_GROUP[name] for name in query.groups]
    found = events.matching(query.filter).totals_by_interval(
        columns, interval=query.interval, limit=MAX_ROWS + 1
    )
    rows = [
        UsageSeries(group=group, points=[_point(row) for row in points])
        for group, points in groupby(_limit_rows(found), key=lambda row: _group(row, query))
    ]
    if not columns and not rows:
        rows = [UsageSeries(group={}, points=[])]
    return UsageTimeseries(rows=rows, start=format_optional_time(query.start), end=format_time(query.end))


def _limit_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found = list(rows)
    if len(found) > MAX_ROWS:
        raise InvalidRequest(
            f"group_by: more than {MAX_ROWS} rows; ask for a shorter time or fewer groups", param="group_by"
        )
    return found


def _group(row: Mapping[str, Any], query: ReportQuery) -> dict[str, str | int | None]:
    """The group's values by name. A missing batch is null; a name that was never resolved is the empty string."""
    group = {name: row[COLUMN_BY_GROUP[name]] for name in query.groups}
    if group.get("batch_id") == "":
        group["batch_id"] = None
    return group


def _point(row: Mapping[str, Any]) -> UsagePoint:
    return UsagePoint(at=format_time(row["bucket"]), **_totals(row))


def _totals(row: Mapping[str, Any]) -> dict[str, Any]:
    """The members that rows and points share."""
    return {
        "requests": row["requests"],
        "errors": row["errors"],
        "tokens": tokens_json({meter: row[f"sum_{meter}"] for meter in METERS}),
        "cost_nanos": int(row["cost"] or 0),
        "unpriced": row["unpriced"],
        "duration_ms": _durations(row),
    }


def _durations(row: Mapping[str, Any]) -> Durations:
    average = row["duration_avg"]
    p50, p95 = row["duration_percentiles"] or (None, None)
    return Durations(
        avg=None if average is None else round(float(average), 1), p50=p50, p95=p95, max=row["duration_max"]
    )
