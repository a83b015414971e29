"""Summaries and series of events, as the usage routes answer them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from relaybatch.http.errors import InvalidRequest
from routing.meters import METERS
from usage.queries import COLUMN_BY_GROUP
from usage.serializers import format_time, tokens_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from usage.models import UsageEventQuerySet
    from usage.queries import ReportQuery

MAX_ROWS = 10_000


def summary(events: UsageEventQuerySet, *, query: ReportQuery) -> dict[str, Any]:
    """A row a group, the dearest first; without groups one row, also of no events."""
    matching = events.matching(query.filter)
    columns = [COLUMN_BY_GROUP[name] for name in query.groups]
    rows = matching.totals_by_group(columns, limit=MAX_ROWS + 1) if columns else [matching.totals()]
    return _report([_group(row, query) | _sums_json(row) for row in _limit_rows(rows)], query=query)


def timeseries(events: UsageEventQuerySet, *, query: ReportQuery) -> dict[str, Any]:
    """A row a group with its points, oldest first; an interval without events has no point."""
    columns = [COLUMN_BY_GROUP[name] for name in query.groups]
    matching = events.matching(query.filter)
    points = _limit_rows(matching.totals_by_interval(columns, interval=query.interval, limit=MAX_ROWS + 1))
    series = [
        {"group": group, "points": [{"at": format_time(row["bucket"])} | _sums_json(row) for row in rows]}
        for group, rows in groupby(points, key=lambda row: _group(row, query)["group"])
    ]
    return _report(series if columns or series else [{"group": {}, "points": []}], query=query)


def _report(rows: list[dict[str, Any]], *, query: ReportQuery) -> dict[str, Any]:
    start = query.start and format_time(query.start)
    return {"rows": rows, "from": start, "to": format_time(query.end)}


def _limit_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found = list(rows)
    if len(found) > MAX_ROWS:
        raise InvalidRequest(
            f"group_by: more than {MAX_ROWS} rows; ask for a shorter time or fewer groups", param="group_by"
        )
    return found


def _group(row: Mapping[str, Any], query: ReportQuery) -> dict[str, Any]:
    """An empty name reads as null for a batch that there is none of, and as "" for what was never resolved."""
    group = {name: row[COLUMN_BY_GROUP[name]] for name in query.groups}
    if group.get("batch_id") == "":
        group["batch_id"] = None
    return {"group": group}


def _sums_json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "requests": row["requests"],
        "errors": row["errors"],
        "tokens": tokens_json({meter: row[f"sum_{meter}"] for meter in METERS}),
        "cost_nanos": int(row["cost"] or 0),
        "unpriced": row["unpriced"],
        "duration_ms": _durations_json(row),
    }


def _durations_json(row: Mapping[str, Any]) -> dict[str, float | int | None]:
    average = row["duration_avg"]
    p50, p95 = row["duration_percentiles"] or (None, None)
    return {
        "avg": None if average is None else round(float(average), 1),
        "p50": p50,
        "p95": p95,
        "max": row["duration_max"],
    }
