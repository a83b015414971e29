"""The usage routes over HTTP: who sees what, filters, pages and CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from routing.models import User
from tests.support.calls.usage_calls import (
    ADMIN_TOKEN,
    ALL,
    BATCH,
    EVENTS,
    SUMMARY,
    UNROUTED_OUTCOME,
    body,
    get,
    owner_of,
    set_event_time,
)
from tests.support.rows.catalog import make_caller
from tests.support.rows.usage_rows import ANSWERED, TARGET, draft, refused, unreadable
from usage.ledger import record, record_many
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries, Settings

pytestmark = pytest.mark.django_db


# One event


def test_an_event_shows_these_fields_and_no_others(caller: SimpleNamespace) -> None:
    made = draft(owner=owner_of(caller), batch_id=BATCH, public_batch_id="msgbatch_b", custom_id="row-1")
    record(made)
    set_event_time(made.id, at=datetime(2026, 10, 21, 9, 14, 3, 512_345, tzinfo=UTC))
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
                "upstream_cost_nanos": None,
                "cost_breakdown": {"input": 120_000, "cache_read": 20_000, "output": 400_000},
                "pricing": "plain@3",
            }
        ],
    }


def test_what_is_unknown_is_null_and_what_is_nothing_is_zero(caller: SimpleNamespace) -> None:
    unknown = draft(owner=owner_of(caller), outcome=unreadable())
    nothing = draft(
        owner=owner_of(caller), outcome=UNROUTED_OUTCOME, source="live", batch_id=None, item_idx=None
    )
    record_many([unknown, nothing])
    listed = {event["id"]: event for event in body(EVENTS, caller.headers)["events"]}
    assert listed[str(unknown.id)]["tokens"] is None
    assert listed[str(unknown.id)]["cost_nanos"] is None
    assert listed[str(nothing.id)]["cost_nanos"] == 0
    assert listed[str(nothing.id)]["tokens"]["input"] == 0
    assert (listed[str(nothing.id)]["batch_id"], listed[str(nothing.id)]["status"]) == (None, 0)


# Who sees what


def test_a_stranger_sees_nothing_of_an_owners_usage(caller: SimpleNamespace) -> None:
    record_many([draft(owner=owner_of(caller), batch_id=BATCH)])
    stranger = make_caller(caller).headers
    filters = {"batch_id": str(BATCH)}
    assert body(EVENTS, stranger, filters)["events"] == []
    assert body(SUMMARY, stranger, filters)["rows"][0]["requests"] == 0
    assert body(SUMMARY, stranger, filters | {"group_by": "model"})["rows"] == []
    assert body(SUMMARY, caller.headers, filters)["rows"][0]["requests"] == 1


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
        "nowhere": draft(owner="a", public_batch_id="batch_nowhere", outcome=UNROUTED_OUTCOME),
        "live": draft(owner="b", source="live", batch_id=None, item_idx=None, outcome=elsewhere),
    }
    record_many(list(made.values()))
    set_event_time(made["live"].id, at=datetime.now(UTC) - timedelta(days=2))
    listed = {event["id"] for event in body(ALL["events"], admin_token, query)["events"]}
    assert {name for name, event in made.items() if str(event.id) in listed} == set(found.split())


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
        set_event_time(event.id, at=datetime.now(UTC) - timedelta(days=days))
    first = body(EVENTS, caller.headers, {"limit": 4})
    second = body(EVENTS, caller.headers, {"limit": 4, "cursor": first["next_cursor"]})
    assert [event["id"] for event in first["events"] + second["events"]] == [str(event.id) for event in made]
    assert second["next_cursor"] is None


# CSV


def table(answer: Any) -> list[list[str]]:
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))


@pytest.mark.parametrize(("query", "accept"), [({"format": "csv"}, "*/*"), ({}, "text/csv")])
def test_csv_has_every_event_and_unknown_numbers_are_empty(
    query: dict[str, str], accept: str, caller: SimpleNamespace
) -> None:
    made = [draft(owner=owner_of(caller)), draft(owner=owner_of(caller), outcome=unreadable())]
    record_many(made)
    answer = get(EVENTS, caller.headers | {"Accept": accept}, query)
    header, *rows = table(answer)
    listed = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert listed.keys() == {str(event.id) for event in made}
    answered, failed = (listed[str(event.id)] for event in made)
    assert (answered["input"], answered["cache_read"], answered["cost_nanos"]) == ("60", "40", "540000")
    assert json.loads(answered["cost_breakdown"])["output"] == 400_000
    assert (failed["input"], failed["cost_nanos"], failed["status"]) == ("", "", "200")


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
