"""The usage routes over HTTP: summaries and series."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.support.calls.usage_calls import (
    ALL,
    SUMMARY,
    UNROUTED_OUTCOME,
    body,
    owner_of,
    set_event_time,
)
from tests.support.rows.usage_rows import ANSWERED, TARGET, draft, refused, unreadable
from usage.ledger import record, record_many

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db


def test_a_summary_adds_up_each_group_the_dearest_first(
    caller: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    owner = owner_of(caller)
    other = replace(ANSWERED, target=replace(TARGET, model="other"))
    record_many(
        [
            *(draft(owner=owner, duration_ms=ms) for ms in (10, 20, 30, 40)),
            draft(owner=owner, outcome=unreadable(), duration_ms=100),
            draft(owner=owner, duration_ms=9_999).as_late(),
            draft(owner=owner, outcome=other, duration_ms=7),
        ]
    )
    with django_assert_num_queries(2):
        answer = body(SUMMARY, caller.headers, {"group_by": "model"})
    assert answer["rows"] == [
        {
            "group": {"model": "gpt-4o"},
            "requests": 5,
            "errors": 1,
            "tokens": {"input": 300, "cache_read": 200, "cache_write": 0, "output": 250},
            "cost_nanos": 5 * 540_000,
            "unpriced": 1,
            "duration_ms": {"avg": 40.0, "p50": 30, "p95": 100, "max": 100},
        },
        {
            "group": {"model": "other"},
            "requests": 1,
            "errors": 0,
            "tokens": {"input": 60, "cache_read": 40, "cache_write": 0, "output": 50},
            "cost_nanos": 540_000,
            "unpriced": 0,
            "duration_ms": {"avg": 7.0, "p50": 7, "p95": 7, "max": 7},
        },
    ]


def test_a_summary_without_groups_is_one_row_even_of_nothing(caller: SimpleNamespace) -> None:
    answer = body(SUMMARY, caller.headers)
    start, end = (datetime.fromisoformat(answer[name]) for name in ("from", "to"))
    assert end - start == timedelta(days=30)
    assert answer["rows"] == [
        {
            "group": {},
            "requests": 0,
            "errors": 0,
            "tokens": {"input": 0, "cache_read": 0, "cache_write": 0, "output": 0},
            "cost_nanos": 0,
            "unpriced": 0,
            "duration_ms": {"avg": None, "p50": None, "p95": None, "max": None},
        }
    ]


@pytest.mark.parametrize(
    ("group_by", "groups"),
    [
        ("batch_id", [{"batch_id": "batch_a"}, {"batch_id": None}]),
        ("source,project", [{"source": "batch", "project": "search"}, {"source": "live", "project": ""}]),
        ("error_kind", [{"error_kind": ""}, {"error_kind": "model_not_found"}]),
        ("status", [{"status": 200}, {"status": 0}]),
        (
            "status,error_kind",
            [{"status": 200, "error_kind": ""}, {"status": 0, "error_kind": "model_not_found"}],
        ),
    ],
)
def test_groups(group_by: str, groups: list[dict[str, str | int | None]], caller: SimpleNamespace) -> None:
    owner = owner_of(caller)
    live = draft(owner=owner, source="live", batch_id=None, item_idx=None, outcome=UNROUTED_OUTCOME)
    record_many([draft(owner=owner, public_batch_id="batch_a"), live])
    rows = body(SUMMARY, caller.headers, {"group_by": group_by})["rows"]
    assert [row["group"] for row in rows] == groups


GROUPS = (
    *("source", "model", "provider", "host", "policy", "project", "team", "principal_id", "credential_id"),
    *("status", "error_kind", "batch_id"),
)


@pytest.mark.parametrize("name", GROUPS)
def test_every_name_groups_a_summary_and_a_series_and_narrows_both(
    name: str, caller: SimpleNamespace, admin_token: dict[str, str]
) -> None:
    record_many([draft(owner=owner_of(caller)), draft(owner="another")])
    (own,) = body(SUMMARY, caller.headers, {"group_by": name})["rows"]
    value = own["group"][name]
    for route in (ALL["summary"], ALL["series"]):
        rows = body(route, admin_token, {"group_by": name, name: value})["rows"]
        assert [row["group"] for row in rows] == [{name: value}]


def test_a_batchs_summary_reaches_back_to_its_beginning(caller: SimpleNamespace) -> None:
    old = draft(owner=owner_of(caller), public_batch_id="batch_a")
    record(old)
    set_event_time(old.id, at=datetime.now(UTC) - timedelta(days=300))
    assert body(SUMMARY, caller.headers)["rows"][0]["requests"] == 0
    answer = body(SUMMARY, caller.headers, {"batch_id": "batch_a"})
    assert (answer["rows"][0]["requests"], answer["from"]) == (1, None)


# Series


@pytest.mark.parametrize(
    ("interval", "times"),
    [
        ("1m", ["10:01:00", "10:02:00", "11:00:00"]),
        ("1h", ["10:00:00", "11:00:00"]),
        ("1d", ["00:00:00"]),
    ],
)
def test_a_series_has_a_point_where_there_are_events(
    interval: str, times: list[str], admin_token: dict[str, str]
) -> None:
    for clock in ("10:01:59", "10:02:00", "10:02:30", "11:00:00"):
        made = draft()
        record(made)
        set_event_time(made.id, at=datetime.fromisoformat(f"2026-10-21T{clock}+00:00"))
    query = {"interval": interval, "from": "2026-10-21T00:00:00Z", "to": "2026-10-22T00:00:00Z"}
    answer = body(ALL["series"], admin_token, query)
    (row,) = answer["rows"]
    assert (answer["from"], answer["to"]) == ("2026-10-21T00:00:00.000Z", "2026-10-22T00:00:00.000Z")
    assert [point["at"] for point in row["points"]] == [f"2026-10-21T{clock}.000Z" for clock in times]
    assert sum(point["requests"] for point in row["points"]) == 4
    assert sum(point["cost_nanos"] for point in row["points"]) == 4 * 540_000


def test_a_series_has_a_row_for_each_group(
    admin_token: dict[str, str], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    other = replace(ANSWERED, target=replace(TARGET, model="other"))
    record_many([draft(), draft(), draft(outcome=other)])
    with django_assert_num_queries(1):
        rows = body(ALL["series"], admin_token, {"interval": "1d", "group_by": "model"})["rows"]
    assert [row["group"] for row in rows] == [{"model": "gpt-4o"}, {"model": "other"}]
    assert [[point["requests"] for point in row["points"]] for row in rows] == [[2], [1]]


def test_a_series_is_grouped_by_status_and_none_answered_is_one(admin_token: dict[str, str]) -> None:
    record_many([draft(), draft(outcome=refused()), draft(outcome=UNROUTED_OUTCOME)])
    rows = body(ALL["series"], admin_token, {"interval": "1d", "group_by": "status"})["rows"]
    assert [row["group"] for row in rows] == [{"status": 0}, {"status": 200}, {"status": 429}]
    assert [[point["requests"] for point in row["points"]] for row in rows] == [[1], [1], [1]]


def test_a_series_of_nothing_has_no_points(admin_token: dict[str, str]) -> None:
    assert body(ALL["series"], admin_token)["rows"] == [{"group": {}, "points": []}]
    assert body(ALL["series"], admin_token, {"group_by": "model"})["rows"] == []
