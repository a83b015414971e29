"""Parse the query parameters of the usage routes."""

from __future__ import annotations

import base64
import binascii
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from relaybatch.http.query_params import QueryParams, invalid_param
from usage.models import EventFilter

if TYPE_CHECKING:
    from django.http import HttpRequest

# Parameter -> column. `batch_id` is the id in the batch's own dialect.
COLUMN_BY_FILTER = {
    "source": "source",
    "batch_id": "public_batch_id",
    "model": "model",
    "provider": "provider",
    "host": "host",
    "policy": "policy",
    "project": "project",
    "team": "team",
    "principal_id": "principal_id",
    "credential_id": "credential_id",
    "error_kind": "error_kind",
}
# Names that `group_by` takes.
COLUMN_BY_GROUP = COLUMN_BY_FILTER | {"status": "status"}
SOURCES = ("batch", "live")
STATUS_CLASSES = {f"{digit}xx": digit for digit in range(6)}
FILTER_PARAMETERS = (*COLUMN_BY_FILTER, "status", "status_class", "since", "from", "to")
DEFAULT_REPORT_WINDOW = timedelta(days=30)
DEFAULT_PAGE_LIMIT = 100
MAX_PAGE_LIMIT = 1000
MAX_POINTS = 2000
# Interval -> its length, and how far back a series goes by default.
INTERVALS = {
    "1m": (timedelta(minutes=1), timedelta(days=1)),
    "1h": (timedelta(hours=1), DEFAULT_REPORT_WINDOW),
    "1d": (timedelta(days=1), DEFAULT_REPORT_WINDOW),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The last event of a page, after which the next page begins."""

    at: datetime
    id: uuid.UUID

    def encode(self) -> str:
        packed = f"{self.at.astimezone(UTC):%Y%m%d%H%M%S%f}{self.id.hex}"
        return base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsQuery:
    """`limit` None: every event, as a stream of CSV."""

    filter: EventFilter
    limit: int | None
    cursor: Cursor | None
    as_csv: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuery:
    """`groups`: keys of `COLUMN_BY_GROUP`. `start` and `end` are the answer's; only a series has an `interval`."""

    filter: EventFilter
    groups: tuple[str, ...]
    start: datetime | None
    end: datetime
    interval: str = ""


def events_query(request: HttpRequest, *, now: datetime) -> EventsQuery:
    """Parse a list of events; without a time filter it has events of all time."""
    query = QueryParams(request, known=(*FILTER_PARAMETERS, "limit", "cursor", "format"))
    as_csv = query.choice("format", default=_accepted_format(request), among=("json", "csv")) == "csv"
    paged = query.text("limit") is not None or not as_csv
    limit = (
        query.number("limit", default=DEFAULT_PAGE_LIMIT, minimum=1, maximum=MAX_PAGE_LIMIT)
        if paged
        else None
    )
    cursor = query.text("cursor")
    return EventsQuery(
        filter=_filter(query, now=now, window=None),
        limit=limit,
        cursor=None if cursor is None else _decode_cursor(cursor),
        as_csv=as_csv,
    )


def summary_query(request: HttpRequest, *, now: datetime) -> ReportQuery:
    """Parse a summary: of the last 30 days by default, or of all time when batches are named."""
    query = QueryParams(request, known=(*FILTER_PARAMETERS, "group_by"))
    window = None if query.values("batch_id") else DEFAULT_REPORT_WINDOW
    event_filter = _filter(query, now=now, window=window)
    return ReportQuery(
        filter=event_filter,
        groups=_groups(query),
        start=event_filter.start,
        end=_reported_end(event_filter, now=now),
    )


def series_query(request: HttpRequest, *, now: datetime) -> ReportQuery:
    query = QueryParams(request, known=(*FILTER_PARAMETERS, "group_by", "interval"))
    interval = query.choice("interval", default="1h", among=INTERVALS)
    length, window = INTERVALS[interval]
    event_filter = _filter(query, now=now, window=window)
    end = _reported_end(event_filter, now=now)
    if event_filter.start is not None and (end - event_filter.start) / length > MAX_POINTS:
        raise invalid_param(
            "interval", f"a longer one, or a shorter time: at most {MAX_POINTS} points of {interval}"
        )
    return ReportQuery(
        filter=event_filter, groups=_groups(query), start=event_filter.start, end=end, interval=interval
    )


def _filter(query: QueryParams, *, now: datetime, window: timedelta | None) -> EventFilter:
    columns = {column: query.values(name) for name, column in COLUMN_BY_FILTER.items() if name != "source"}
    columns["source"] = query.choices("source", among=SOURCES)
    classes = query.choices("status_class", among=STATUS_CLASSES)
    start, end = _time_range(query, now=now, window=window)
    return EventFilter(
        columns={column: values for column, values in columns.items() if values},
        statuses=query.numbers("status", maximum=999),
        status_classes=tuple(STATUS_CLASSES[name] for name in classes),
        start=start,
        end=end,
    )


def _time_range(
    query: QueryParams, *, now: datetime, window: timedelta | None
) -> tuple[datetime | None, datetime | None]:
    span, start, end = query.duration("since"), query.time("from"), query.time("to")
    if span is not None and start is not None:
        raise invalid_param("since", "either since or from, not both")
    if span is None and start is None:
        span, origin = window, end or now
    else:
        origin = now
    if span is not None:
        start = _subtract_span(origin, span)
    if start is not None and end is not None and start >= end:
        raise invalid_param("to", "a time after the beginning")
    return start, end


def _subtract_span(origin: datetime, span: timedelta) -> datetime:
    try:
        return origin - span
    except OverflowError:
        raise invalid_param("since", "a span within the calendar") from None


def _reported_end(event_filter: EventFilter, *, now: datetime) -> datetime:
    """The end that the answer reports. Without `to` it is no limit: events may be newer than this machine's clock."""
    return event_filter.end or max(now, event_filter.start or now)


def _groups(query: QueryParams) -> tuple[str, ...]:
    return tuple(dict.fromkeys(query.choices("group_by", among=COLUMN_BY_GROUP)))


def _accepted_format(request: HttpRequest) -> str:
    accept = request.headers.get("accept", "").lower()
    return "csv" if "text/csv" in accept and "application/json" not in accept else "json"


def _decode_cursor(raw: str) -> Cursor:
    try:
        packed = base64.b64decode(raw + "=" * (-len(raw) % 4), altchars=b"-_", validate=True).decode("ascii")
        at = datetime.strptime(packed[:20], "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
        return Cursor(at=at, id=uuid.UUID(hex=packed[20:]))
    except (ValueError, binascii.Error):
        raise invalid_param("cursor", "the next_cursor of an earlier answer") from None
