"""The query parameters of the usage routes: what they mean, and what is refused by name."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from django.test import RequestFactory

from relaybatch.http.errors import InvalidRequest
from usage.reporting.queries import Cursor, events_query, series_query, summary_query

if TYPE_CHECKING:
    from usage.models import EventFilter

NOW = datetime(2026, 10, 21, 9, 14, 3, 512_000, tzinfo=UTC)
DAY = timedelta(days=1)


def event_filter(query: str) -> EventFilter:
    return events_query(RequestFactory().get(f"/v1/usage/events?{query}"), now=NOW).filter


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("model=gpt-4o", {"model": ("gpt-4o",)}),
        ("model=a,b&model=c", {"model": ("a", "b", "c")}),
        ("model=%22a,b%22,c", {"model": ("a,b", "c")}),
        ("model=", {"model": ("",)}),
        ("model=a/b%20%F0%9F%98%80", {"model": ("a/b \U0001f600",)}),
        ("source=batch,live", {"source": ("batch", "live")}),
        ("batch_id=msgbatch_1", {"public_batch_id": ("msgbatch_1",)}),
        ("project=p&team=t&policy=o", {"project": ("p",), "team": ("t",), "policy": ("o",)}),
        ("principal_id=1&credential_id=2", {"principal_id": ("1",), "credential_id": ("2",)}),
    ],
)
def test_names_are_lists(query: str, columns: dict[str, tuple[str, ...]]) -> None:
    assert event_filter(query).columns == columns


def test_statuses_and_their_classes() -> None:
    parsed = event_filter("status=200,429&status_class=0xx,5xx")
    assert (parsed.statuses, parsed.status_classes) == ((200, 429), (0, 5))


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("", None, None),
        ("since=1h", NOW - timedelta(hours=1), None),
        ("since=7d&to=2026-10-21T00:00:00Z", NOW - 7 * DAY, datetime(2026, 10, 21, tzinfo=UTC)),
        ("since=30m", NOW - timedelta(minutes=30), None),
        ("from=2026-10-01T00:00:00Z", datetime(2026, 10, 1, tzinfo=UTC), None),
        ("from=2026-10-01T02:00:00%2B02:00", datetime(2026, 10, 1, tzinfo=UTC), None),
        ("from=2026-10-01T02:00:00+02:00", datetime(2026, 10, 1, tzinfo=UTC), None),
        ("to=2026-10-01t00:00:00.250z", None, datetime(2026, 10, 1, 0, 0, 0, 250_000, tzinfo=UTC)),
    ],
)
def test_times(query: str, start: datetime | None, end: datetime | None) -> None:
    parsed = event_filter(query)
    assert (parsed.start, parsed.end) == (start, end)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("modell=x", "modell"),
        ("group_by=model", "group_by"),
        ("source=cron", "source"),
        ("source=", "source"),
        ("status=abc", "status"),
        ("status=-1", "status"),
        ("status=1000", "status"),
        ("status=%D9%A2%D9%A0%D9%A0", "status"),
        ("status=" + "9" * 5000, "status"),
        ("status_class=2x", "status_class"),
        ("status_class=6xx", "status_class"),
        ("since=yesterday", "since"),
        ("since=1h&since=2h", "since"),
        ("since=-1h", "since"),
        ("since=999999999w", "since"),
        ("since=9999999d", "since"),
        ("since=1h&from=2026-10-01T00:00:00Z", "since"),
        ("from=2026-10-01", "from"),
        ("from=2026-10-01T00:00:00", "from"),
        ("from=2026-13-01T00:00:00Z", "from"),
        ("from=0001-01-01T00:00:00%2B14:00", "from"),
        ("to=1700000000", "to"),
        ("from=2026-10-02T00:00:00Z&to=2026-10-01T00:00:00Z", "to"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=", "limit"),
        ("limit=1e2", "limit"),
        ("cursor=", "cursor"),
        ("cursor=abc", "cursor"),
        ("cursor=%C3%BC", "cursor"),
        ("format=xml", "format"),
        ("model=a%00b", "model"),
        ("model=a%0Ab", "model"),
        ("model=a%0Db", "model"),
        ("model=" + "m" * 200_000, "model"),
    ],
)
def test_a_bad_parameter_is_named(query: str, named: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        event_filter(query)
    assert refused.value.param == named
    assert named in refused.value.message


def test_thousands_of_parameters_are_refused_as_the_callers_mistake() -> None:
    with pytest.raises(InvalidRequest):
        event_filter("&".join(f"a{n}=1" for n in range(5_000)))


def test_a_cursor_comes_back_as_it_went() -> None:
    cursor = Cursor(at=NOW.astimezone(timezone(timedelta(hours=5))), id=uuid.UUID(int=2**128 - 1))
    query = events_query(RequestFactory().get("/", {"cursor": cursor.encode()}), now=NOW)
    assert query.cursor == Cursor(at=NOW, id=cursor.id)


@pytest.mark.parametrize(
    ("query", "accept", "as_csv", "limit"),
    [
        ({}, "", False, 100),
        ({"limit": "7"}, "*/*", False, 7),
        ({}, "text/csv", True, None),
        ({"limit": "7"}, "text/csv;q=0.9, */*", True, 7),
        ({"format": "csv"}, "application/json", True, None),
        ({"format": "json"}, "text/csv", False, 100),
        ({}, "application/json, text/csv", False, 100),
    ],
)
def test_the_form_of_the_answer(query: dict[str, str], accept: str, as_csv: bool, limit: int | None) -> None:
    parsed = events_query(RequestFactory().get("/", query, headers={"accept": accept}), now=NOW)
    assert (parsed.as_csv, parsed.limit) == (as_csv, limit)


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ({}, NOW - 30 * DAY, NOW),
        ({"batch_id": "b"}, None, NOW),
        ({"batch_id": "b", "since": "1d"}, NOW - DAY, NOW),
        (
            {"to": "2026-10-11T00:00:00Z"},
            datetime(2026, 9, 11, tzinfo=UTC),
            datetime(2026, 10, 11, tzinfo=UTC),
        ),
    ],
)
def test_a_summarys_window(query: dict[str, str], start: datetime | None, end: datetime) -> None:
    parsed = summary_query(RequestFactory().get("/", query), now=NOW)
    assert (parsed.start, parsed.end) == (start, end)


def test_groups_keep_their_order_and_are_asked_for_once() -> None:
    parsed = summary_query(RequestFactory().get("/?group_by=team,model&group_by=team"), now=NOW)
    assert parsed.groups == ("team", "model")


@pytest.mark.parametrize("bad", ["owner", "model,at", "", "model;drop"])
def test_an_unknown_group_is_named(bad: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        summary_query(RequestFactory().get("/", {"group_by": bad}), now=NOW)
    assert refused.value.param == "group_by"


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"interval": "5m"}, "interval"),
        ({"interval": "1m", "since": "2d"}, "interval"),
        ({"from": "2020-01-01T00:00:00Z"}, "interval"),
        ({"limit": "1"}, "limit"),
    ],
)
def test_a_series_of_too_many_points_is_refused(query: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        series_query(RequestFactory().get("/", query), now=NOW)
    assert refused.value.param == named


def test_a_series_has_a_window_that_fits_its_interval() -> None:
    starts = {
        interval: series_query(RequestFactory().get("/", {"interval": interval}), now=NOW).start
        for interval in ("1m", "1h", "1d")
    }
    assert starts == {"1m": NOW - DAY, "1h": NOW - 30 * DAY, "1d": NOW - 30 * DAY}
