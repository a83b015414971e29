"""The usage routes over HTTP: who sees what, pages, filters, summaries, series and CSV."""

from __future__ import annotations

import csv
import io
import json
import re
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client

from routing.call import Outcome, Target
from routing.failures import Failure
from routing.keys import hash_of
from routing.models import User
from tests.catalog import make_caller, make_catalog
from tests.integration.usage_rows import ANSWERED, TARGET, draft, refused
from usage.ledger import record, record_many
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries, Settings

pytestmark = pytest.mark.django_db
EVENTS, SUMMARY = "/v1/usage/events", "/v1/usage/summary"
ALL = {"events": "/api/usage/events", "summary": "/api/usage/summary", "series": "/api/usage/timeseries"}
BATCH = uuid.UUID(int=0xB)
ADMIN_TOKEN = "an-operators-token"
NOWHERE = Outcome(
    target=Target(requested_model="nope"), failure=Failure(code="model_not_found", message="nope")
)


@pytest.fixture
def caller() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


@pytest.fixture
def admin_token(settings: Settings) -> dict[str, str]:
    settings.RELAY_ADMIN_TOKEN = ADMIN_TOKEN
    return {"Authorization": f"Bearer {ADMIN_TOKEN}"}


def owner_of(caller: SimpleNamespace) -> str:
    return hash_of(caller.relay_key_value)


def get(path: str, headers: dict[str, str], query: dict[str, Any] | None = None) -> Any:
    return Client().get(path, query or {}, headers=headers)


def body(path: str, headers: dict[str, str], query: dict[str, Any] | None = None) -> Any:
    answer = get(path, headers, query)
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content)


def put_back(event_id: uuid.UUID, *, at: datetime) -> None:
    UsageEvent.objects.filter(id=event_id).update(at=at)


# One event


def test_an_event_shows_these_fields_and_no_others(caller: SimpleNamespace) -> None:
    made = draft(owner=owner_of(caller), batch_id=BATCH, public_batch_id="msgbatch_b", custom_id="row-1")
    record(made)
    put_back(made.id, at=datetime(2026, 10, 21, 9, 14, 3, 512_345, tzinfo=UTC))
    assert body(EVENTS, caller.headers) == {
        "next_cursor": None,
        "events": [
            {
                "id": str(made.id),
                "owner": owner_of(caller),
                "late": False,
                "currency": "USD",
                "source": "batch",
                "at": "2026-10-21T09:14:03.512Z",
                "batch_id": "msgbatch_b",
                "item_idx": 0,
                "custom_id": "row-1",
                "attempt": 1,
                "status": 200,
                "error_kind": "",
                "duration_ms": 50,
                "upstream_ms": 40,
                "keys_tried": 1,
                "requested_model": "gpt",
                "model": "gpt-4o",
                "provider": "openai",
                "host": "openai-eu",
                "host_key": "openai-main",
                "adapter": "openai",
                "policy": "default",
                "project": "search",
                "team": "core",
                "principal_kind": "serviceaccount",
                "principal_id": made.principal_id,
                "credential_kind": "key",
                "credential_id": made.credential_id,
                "tokens": {"input": 60, "cache_read": 40, "cache_write": 0, "output": 50},
                "cost_nanos": 540_000,
                "cost_breakdown": {"input": 120_000, "cache_read": 20_000, "output": 400_000},
                "pricing": "plain@3",
            }
        ],
    }


def test_what_is_unknown_is_null_and_what_is_nothing_is_zero(caller: SimpleNamespace) -> None:
    unknown = draft(owner=owner_of(caller), outcome=refused())
    nothing = draft(owner=owner_of(caller), outcome=NOWHERE, source="live", batch_id=None, item_idx=None)
    record_many([unknown, nothing])
    shown = {event["id"]: event for event in body(EVENTS, caller.headers)["events"]}
    assert shown[str(unknown.id)]["tokens"] is None
    assert shown[str(unknown.id)]["cost_nanos"] is None
    assert shown[str(nothing.id)]["cost_nanos"] == 0
    assert shown[str(nothing.id)]["tokens"]["input"] == 0
    assert (shown[str(nothing.id)]["batch_id"], shown[str(nothing.id)]["status"]) == (None, 0)


# Who sees what


def test_a_stranger_sees_nothing_of_an_owners_usage(caller: SimpleNamespace) -> None:
    record_many([draft(owner=owner_of(caller), batch_id=BATCH)])
    stranger = make_caller(caller).headers
    asked = {"batch_id": str(BATCH)}
    assert body(EVENTS, stranger, asked)["events"] == []
    assert body(SUMMARY, stranger, asked)["rows"][0]["requests"] == 0
    assert body(SUMMARY, stranger, asked | {"group_by": "model"})["rows"] == []
    assert body(SUMMARY, caller.headers, asked)["rows"][0]["requests"] == 1


@pytest.mark.parametrize("path", [EVENTS, SUMMARY])
def test_a_final_slash_is_optional_and_other_methods_are_refused(path: str, caller: SimpleNamespace) -> None:
    assert get(f"{path}/", caller.headers).status_code == 200
    assert Client().post(path, headers=caller.headers).status_code == 405


@pytest.mark.parametrize("path", [EVENTS, SUMMARY])
def test_a_caller_needs_a_credential(path: str) -> None:
    answer = get(path, {})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert json.loads(answer.content)["error"]["code"] == "missing_credential"


@pytest.mark.parametrize("path", ALL.values())
@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({}, "missing_credential"),
        ({"Authorization": "Bearer wrong"}, "invalid_credential"),
        ({"Authorization": "Bearer"}, "invalid_credential"),
        ({"Authorization": f"Basic {ADMIN_TOKEN}"}, "invalid_credential"),
        ({"Authorization": "Bearer \xfc"}, "invalid_credential"),
    ],
)
@pytest.mark.usefixtures("admin_token")
def test_operators_routes_are_closed_to_others(path: str, header: dict[str, str], code: str) -> None:
    answer = get(path, header)
    assert (answer.status_code, json.loads(answer.content)["error"]["code"]) == (401, code)


@pytest.mark.parametrize("path", ALL.values())
def test_a_callers_key_does_not_open_the_operators_routes(path: str, caller: SimpleNamespace) -> None:
    assert get(path, caller.headers).status_code == 401


@pytest.mark.parametrize("path", ALL.values())
def test_without_a_token_configured_no_token_is_right(path: str, settings: Settings) -> None:
    settings.RELAY_ADMIN_TOKEN = ""
    assert get(path, {"Authorization": "Bearer "}).status_code == 401
    assert get(path, {"Authorization": "Bearer x"}).status_code == 401


@pytest.mark.parametrize("path", ALL.values())
@pytest.mark.parametrize(("staff", "status"), [(True, 200), (False, 403)])
def test_a_session_opens_them_to_staff_alone(path: str, staff: bool, status: int) -> None:
    client = Client()
    client.force_login(User.objects.create_user("ana", is_staff=staff))
    answer = client.get(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/json")


def test_operators_see_everybodys_usage(admin_token: dict[str, str]) -> None:
    record_many([draft(owner="owner-a"), draft(owner="owner-b")])
    assert {event["owner"] for event in body(ALL["events"], admin_token)["events"]} == {"owner-a", "owner-b"}
    assert body(ALL["summary"], admin_token)["rows"][0]["requests"] == 2


# Filters


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, "answered refused nowhere live"),
        ({"source": "batch"}, "answered refused nowhere"),
        ({"source": "live"}, "live"),
        ({"batch_id": "batch_answered"}, "answered"),
        ({"batch_id": "batch_answered,batch_refused"}, "answered refused"),
        ({"batch_id": ""}, "live"),
        ({"model": "gpt-4o"}, "answered refused"),
        ({"model": "GPT-4o"}, ""),
        ({"model": "gpt-4o,other"}, "answered refused live"),
        ({"model": ""}, "nowhere"),
        ({"provider": "elsewhere"}, "live"),
        ({"host": "openai-eu"}, "answered refused live"),
        ({"policy": "default", "project": "search", "team": "core"}, "answered refused live"),
        ({"principal_id": "account-of-b"}, "live"),
        ({"credential_id": "key-of-a"}, "answered refused nowhere"),
        ({"status": "200"}, "answered live"),
        ({"status": "0,429"}, "refused nowhere"),
        ({"status_class": "4xx"}, "refused"),
        ({"status_class": "0xx,2xx"}, "answered nowhere live"),
        ({"error_kind": "upstream_status,model_not_found"}, "refused nowhere"),
        ({"error_kind": ""}, "answered live"),
        ({"since": "1h"}, "answered refused nowhere"),
        ({"since": "3d"}, "answered refused nowhere live"),
        ({"to": "2026-01-01T00:00:00Z"}, ""),
        ({"model": "gpt-4o", "status_class": "2xx", "since": "1h"}, "answered"),
    ],
)
def test_filters(query: dict[str, str], found: str, admin_token: dict[str, str]) -> None:
    elsewhere = replace(ANSWERED, target=replace(TARGET, model="other", provider="elsewhere"))
    made = {
        "answered": draft(owner="a", public_batch_id="batch_answered"),
        "refused": draft(owner="a", public_batch_id="batch_refused", outcome=refused()),
        "nowhere": draft(owner="a", public_batch_id="batch_nowhere", outcome=NOWHERE),
        "live": draft(owner="b", source="live", batch_id=None, item_idx=None, outcome=elsewhere),
    }
    record_many(list(made.values()))
    put_back(made["live"].id, at=datetime.now(UTC) - timedelta(days=2))
    shown = {event["id"] for event in body(ALL["events"], admin_token, query)["events"]}
    assert {name for name, event in made.items() if str(event.id) in shown} == set(found.split())


@pytest.mark.parametrize("path", [EVENTS, SUMMARY])
@pytest.mark.parametrize("query", [{"nonsense": "1"}, {"since": "soon"}, {"model": "a\0b"}])
def test_a_bad_parameter_is_a_400_that_names_it(
    path: str, query: dict[str, str], caller: SimpleNamespace
) -> None:
    answer = get(path, caller.headers, query)
    error = json.loads(answer.content)["error"]
    assert answer.status_code == 400
    assert error["type"] == "invalid_request_error"
    assert error["param"] == next(iter(query))


# Pages


def test_pages_are_complete_and_never_overlap_while_events_are_added(
    caller: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    owner = owner_of(caller)
    before = [draft(owner=owner, batch_id=BATCH, item_idx=idx) for idx in range(23)]
    record_many(before[:12])
    record_many(before[12:])
    # Half of them a day older: ties in time within each half, and a step between them.
    older = [event.id for event in before[::2]]
    UsageEvent.objects.filter(id__in=older).update(at=datetime.now(UTC) - timedelta(days=1))
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 5}
    while True:
        with django_assert_num_queries(2):  # the credential, and the page
            page = body(EVENTS, caller.headers, query)
        seen += [event["id"] for event in page["events"]]
        if page["next_cursor"] is None:
            break
        assert len(page["events"]) == 5
        query["cursor"] = page["next_cursor"]
        record(draft(owner=owner))
    assert len(seen) == len(set(seen)) == 23
    assert set(seen) == {str(event.id) for event in before}


def test_pages_run_from_the_newest_to_the_oldest(caller: SimpleNamespace) -> None:
    made = [draft(owner=owner_of(caller)) for _ in range(6)]
    record_many(made)
    for days, event in enumerate(made):
        put_back(event.id, at=datetime.now(UTC) - timedelta(days=days))
    first = body(EVENTS, caller.headers, {"limit": 4})
    second = body(EVENTS, caller.headers, {"limit": 4, "cursor": first["next_cursor"]})
    assert [event["id"] for event in first["events"] + second["events"]] == [str(event.id) for event in made]
    assert second["next_cursor"] is None


# Summaries


def test_a_summary_adds_up_each_group_the_dearest_first(
    caller: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    owner = owner_of(caller)
    other = replace(ANSWERED, target=replace(TARGET, model="other"))
    record_many(
        [
            *(draft(owner=owner, duration_ms=ms) for ms in (10, 20, 30, 40)),
            draft(owner=owner, outcome=refused(), duration_ms=100),
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
    ],
)
def test_groups(group_by: str, groups: list[dict[str, str | None]], caller: SimpleNamespace) -> None:
    owner = owner_of(caller)
    live = draft(owner=owner, source="live", batch_id=None, item_idx=None, outcome=NOWHERE)
    record_many([draft(owner=owner, public_batch_id="batch_a"), live])
    rows = body(SUMMARY, caller.headers, {"group_by": group_by})["rows"]
    assert [row["group"] for row in rows] == groups


def test_a_batchs_summary_reaches_back_to_its_beginning(caller: SimpleNamespace) -> None:
    old = draft(owner=owner_of(caller), public_batch_id="batch_a")
    record(old)
    put_back(old.id, at=datetime.now(UTC) - timedelta(days=300))
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
        put_back(made.id, at=datetime.fromisoformat(f"2026-10-21T{clock}+00:00"))
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


def test_a_series_of_nothing_has_no_points(admin_token: dict[str, str]) -> None:
    assert body(ALL["series"], admin_token)["rows"] == [{"group": {}, "points": []}]
    assert body(ALL["series"], admin_token, {"group_by": "model"})["rows"] == []


# Plans


IGNORE_OTHERS = """
UPDATE pg_index SET indisvalid = false
WHERE indrelid = 'usage_usageevent'::regclass AND indexrelid <> %s::regclass
"""


@pytest.mark.parametrize(
    ("columns", "index"),
    [
        ({}, "usage_event_newest"),
        ({"owner": "owner-a"}, "usage_event_owner_newest"),
        ({"public_batch_id": "batch_a"}, "usage_event_public_batch"),
        ({"batch_id": BATCH}, "usage_event_once_an_attempt"),
    ],
)
def test_each_way_to_ask_for_events_has_its_index(columns: dict[str, Any], index: str) -> None:
    events = UsageEvent.objects.filter(**columns)
    if "newest" in index:
        events = events.newest_first().older_than(at=datetime.now(UTC), event_id=BATCH)
    with connection.cursor() as cursor:
        # The table is tiny: what is asked is which index can serve, not whether one pays.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(IGNORE_OTHERS, [index])  # without rows each of them serves, at the same price
    plan = events.explain()
    assert f"Index Scan using {index} " in plan
    assert "newest" not in index or "Sort" not in plan
    assert all(re.search(rf"Index Cond: \(+{column}\b", plan) for column in columns), plan


# CSV


def table(answer: Any) -> list[list[str]]:
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))


@pytest.mark.parametrize(("query", "accept"), [({"format": "csv"}, "*/*"), ({}, "text/csv")])
def test_csv_has_every_event_and_unknown_numbers_are_empty(
    query: dict[str, str], accept: str, caller: SimpleNamespace
) -> None:
    made = [draft(owner=owner_of(caller)), draft(owner=owner_of(caller), outcome=refused())]
    record_many(made)
    answer = get(EVENTS, caller.headers | {"Accept": accept}, query)
    header, *rows = table(answer)
    shown = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert shown.keys() == {str(event.id) for event in made}
    answered, failed = (shown[str(event.id)] for event in made)
    assert (answered["input"], answered["cache_read"], answered["cost_nanos"]) == ("60", "40", "540000")
    assert json.loads(answered["cost_breakdown"])["output"] == 400_000
    assert (failed["input"], failed["cost_nanos"], failed["status"]) == ("", "", "429")


def test_csv_streams_past_a_page(
    admin_token: dict[str, str], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    record_many([draft(batch_id=BATCH, item_idx=idx) for idx in range(2_500)])
    with django_assert_num_queries(3):
        answer = get(ALL["events"], admin_token, {"format": "csv"})
        rows = table(answer)
    assert len({row[0] for row in rows}) == 2_501
    assert len(table(get(ALL["events"], admin_token, {"format": "csv", "limit": 10}))) == 11


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_no_cell_of_csv_is_a_formula(text: str, caller: SimpleNamespace) -> None:
    record(draft(owner=owner_of(caller), custom_id=text))
    header, row = table(get(EVENTS, caller.headers, {"format": "csv"}))
    assert row[header.index("custom_id")] == f"'{text}"


def test_csv_keeps_commas_quotes_and_lines_in_their_cell(caller: SimpleNamespace) -> None:
    record(draft(owner=owner_of(caller), custom_id='a,"b"\nü'))
    header, row = table(get(EVENTS, caller.headers, {"format": "csv"}))
    assert row[header.index("custom_id")] == 'a,"b"\nü'
