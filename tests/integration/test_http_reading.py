"""Status, results, list, cancel and delete in Relay's dialect."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now

from batches.cancel import cancel_batch
from batches.models import Batch, BatchItem
from batches.results import PAGE_ITEMS
from tests.catalog import make_caller, make_catalog
from tests.outcomes import complete, discard, end
from tests.submissions import chat_body, submit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def get(client: Client, rows: SimpleNamespace, path: str, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(f"/v1/batches{path}", headers=rows.headers | named)


def status_of(client: Client, rows: SimpleNamespace, batch: Batch, query: str = "") -> dict[str, Any]:
    response = get(client, rows, f"/{batch.id}{query}")
    assert response.status_code == 200
    status: dict[str, Any] = json.loads(response.getvalue())
    return status


def results_of(client: Client, rows: SimpleNamespace, batch: Batch, query: str = "") -> list[dict[str, Any]]:
    response = get(client, rows, f"/{batch.id}/results{query}")
    assert response.status_code == 200
    results: list[dict[str, Any]] = json.loads(response.getvalue())["results"]
    return results


def error_of(response: Any) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(response.getvalue())["error"]
    return error


def test_a_status_has_relays_fields_in_their_order_and_then_ours(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows, chat_body(), chat_body(), metadata={"k": "v"})
    status = status_of(client, rows, batch)
    assert list(status) == [
        *(
            "ID",
            "RelayKeyHash",
            "PolicyID",
            "InboundShape",
            "Status",
            "TotalItems",
            "CreatedAt",
            "CompletedAt",
        ),
        *("ProjectID", "TeamID", "PrincipalKind", "PrincipalID", "CredentialKind", "CredentialID"),
        *("counts", "items", "processing_status", "expires_at", "waiting", "usage", "metadata"),
    ]
    created = batch.created_at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{batch.created_at.microsecond // 1000:03}Z"
    assert status == {
        "ID": str(batch.id),
        "RelayKeyHash": rows.relay_key.key_hash,
        "PolicyID": str(rows.policy.id),
        "InboundShape": "openai",
        "Status": "queued",
        "TotalItems": 2,
        "CreatedAt": created,
        "CompletedAt": None,
        "ProjectID": str(rows.project.id),
        "TeamID": str(rows.team.id),
        "PrincipalKind": "serviceaccount",
        "PrincipalID": str(rows.service_account.id),
        "CredentialKind": "key",
        "CredentialID": str(rows.relay_key.id),
        "counts": {"available": 2},
        "items": [{"idx": 0, "state": "available"}, {"idx": 1, "state": "available"}],
        "processing_status": "in_progress",
        "expires_at": None,
        "waiting": {},
        "usage": {
            "tokens": {"input": 0, "cache_read": 0, "cache_write": 0, "output": 0},
            "cost_nanos": 0,
            "currency": "USD",
            "unpriced": 0,
        },
        "metadata": {"k": "v"},
    }


def test_a_finished_batch_is_completed_at_its_end_and_stays_queued(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows, chat_body(), chat_body(), lifetime_seconds=60)
    complete(batch, 0, b"{}")
    discard(batch, 1, error_code="timeout", error="timed out after 300 s")
    end(batch)
    status = status_of(client, rows, batch)
    assert (status["Status"], status["processing_status"]) == ("queued", "ended")
    assert batch.ended_at
    assert status["CompletedAt"].startswith(batch.ended_at.strftime("%Y-%m-%dT%H:%M:%S."))
    assert status["expires_at"].endswith("Z")
    assert status["counts"] == {"completed": 1, "discarded": 1}


def test_a_cancelled_batch_says_so_and_a_finished_one_stays_as_it_was(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows)
    finished = submit(rows)
    complete(finished, 0, b"{}")
    end(finished)
    for each in (batch, finished):
        response = client.post(f"/v1/batches/{each.id}/cancel", headers=rows.headers)
        assert (response.status_code, json.loads(response.content)) == (200, {"status": "cancelled"})
    status = status_of(client, rows, batch)
    assert (status["Status"], status["processing_status"], status["counts"]) == (
        "cancelled",
        "ended",
        {"cancelled": 1},
    )
    assert status_of(client, rows, finished)["Status"] == "queued"


def test_a_batch_that_is_being_cancelled_is_canceling_while_an_item_runs(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows, chat_body(), chat_body())
    BatchItem.objects.filter(batch=batch, idx=0).update(state="running", worker_id=uuid.uuid4())
    cancel_batch(batch)
    status = status_of(client, rows, batch)
    assert (status["processing_status"], status["counts"]) == ("canceling", {"running": 1, "cancelled": 1})
    assert status["CompletedAt"] is None


def test_items_that_wait_are_counted_by_their_reason(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows, chat_body(), chat_body(), chat_body())
    waiting = BatchItem.objects.filter(batch=batch, idx__lt=2)
    waiting.update(published_at=None, not_before=Now(), waiting_reason="rate_limit")
    assert status_of(client, rows, batch)["waiting"] == {"rate_limit": 2}


def test_items_can_be_left_out_or_filtered_by_state(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows, chat_body(), chat_body(), chat_body())
    discard(batch, 1, error_code="timeout", error="timed out")
    assert "items" not in status_of(client, rows, batch, "?items=false")
    assert status_of(client, rows, batch, "?state=discarded")["items"] == [{"idx": 1, "state": "discarded"}]
    assert status_of(client, rows, batch, "?state=expired")["items"] == []
    assert len(status_of(client, rows, batch, "?state=discarded,available")["items"]) == 3


def test_the_items_of_a_large_batch_come_as_a_stream_of_the_same_form(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows, *[chat_body()] * 10_001)
    response = get(client, rows, f"/{batch.id}", Accept_Encoding="gzip")
    assert response.streaming
    items = json.loads(gzip.decompress(response.getvalue()))["items"]
    assert items == [{"idx": idx, "state": "available"} for idx in range(10_001)]


def test_a_status_takes_the_same_few_queries_for_any_size(
    client: Client, rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    batch = submit(rows, *[chat_body()] * 200)
    # Credential, batch, counts, waiting reasons, usage, items.
    with django_assert_num_queries(6):
        status_of(client, rows, batch)
    with django_assert_num_queries(5):
        status_of(client, rows, batch, "?items=false")
    BatchItem.objects.filter(batch=batch).update(state="expired", finished_at=Now())
    end(batch)
    with django_assert_num_queries(3):
        status_of(client, rows, batch, "?items=false")


def test_results_are_one_object_at_any_time_with_all_items_in_order(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows, *[chat_body()] * 5)
    complete(batch, 3, b'{"id":"x"}')
    discard(
        batch, 1, error_code="upstream_status", error="batch item: upstream status 400", upstream_status=400
    )
    BatchItem.objects.filter(batch=batch, idx=2).update(state="running", worker_id=uuid.uuid4())
    BatchItem.objects.filter(batch=batch, idx=4).update(
        state="cancelled", error="cancelled while running", finished_at=Now()
    )
    assert results_of(client, rows, batch) == [
        {"idx": 0, "state": "available"},
        {"idx": 1, "state": "discarded", "error": "batch item: upstream status 400"},
        {"idx": 2, "state": "running"},
        {"idx": 3, "state": "completed", "response": {"id": "x"}},
        {"idx": 4, "state": "cancelled", "error": "cancelled while running"},
    ]


def test_a_response_is_given_back_in_the_bytes_it_was_stored_in(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows)
    stored = (
        b'{ "n": 1180591620717411303424, "f": 1.0,\n "t": "\\u0000\\ud800", "d": 0.1234567890123456789012 }'
    )
    complete(batch, 0, stored)
    body = get(client, rows, f"/{batch.id}/results").getvalue()
    assert body == b'{"results":[{"idx":0,"state":"completed","response":' + stored + b"}]}"


def test_an_answer_that_cannot_be_read_back_is_said_and_the_others_are_there(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows, chat_body(), chat_body())
    complete(batch, 0, None)
    complete(batch, 1, b"{}")
    lost, found = results_of(client, rows, batch, "?include=error_code")
    assert lost == {
        "idx": 0,
        "state": "completed",
        "error": "load result: the stored answer cannot be read",
        "error_code": "load_result_failed",
    }
    assert found == {"idx": 1, "state": "completed", "response": {}, "error_code": None}


def test_what_is_included_is_added_in_its_own_fields(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows)
    discard(
        batch,
        0,
        error_code="upstream_status",
        error="batch item: upstream status 502",
        upstream_status=502,
        upstream_error=b"<html>\0\xff",
    )
    query = "?include=error_code,upstream_status&include=upstream_error,usage"
    assert results_of(client, rows, batch, query) == [
        {
            "idx": 0,
            "state": "discarded",
            "error": "batch item: upstream status 502",
            "error_code": "upstream_status",
            "upstream_status": 502,
            "upstream_error": "<html>\0\ufffd",
            "usage": None,
        }
    ]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("available", None),
        ("running", None),
        ("completed", None),
        ("expired", None),
        ("cancelled", "x"),
        ("discarded", "x"),
    ],
)
def test_only_items_that_failed_or_were_cut_say_why(
    client: Client, rows: SimpleNamespace, state: str, expected: str | None
) -> None:
    batch = submit(rows)
    complete(batch, 0, b"{}")
    open_since = {"finished_at": None, "worker_id": uuid.uuid4()} if state in ("available", "running") else {}
    BatchItem.objects.filter(batch=batch).update(
        state=state, error_code="x", error="x", upstream_error=b"x", **open_since
    )
    [shown] = results_of(client, rows, batch, "?include=error_code,upstream_error")
    assert [shown.get(name) for name in ("error", "error_code", "upstream_error")] == [expected] * 3


def test_results_are_filtered_and_paged(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows, *[chat_body()] * 6)
    for idx in (1, 3, 5):
        discard(batch, idx, error_code="timeout", error="timed out")
    expected = {
        "?state=discarded": [1, 3, 5],
        "?after_idx=1&limit=2": [2, 3],
        "?after_idx=1&limit=2&state=discarded": [3, 5],
        "?after_idx=5": [],
        "?state=completed": [],
    }
    found = {query: results_of(client, rows, batch, query) for query in expected}
    assert {query: [result["idx"] for result in results] for query, results in found.items()} == expected


def test_results_over_several_pages_hold_each_item_once(client: Client, rows: SimpleNamespace) -> None:
    total = 2 * PAGE_ITEMS + 51
    batch = submit(rows, *[chat_body()] * total)
    assert [result["idx"] for result in results_of(client, rows, batch)] == list(range(total))
    limited = results_of(client, rows, batch, f"?limit={PAGE_ITEMS}")
    assert [result["idx"] for result in limited] == list(range(PAGE_ITEMS))


def test_results_as_lines_are_one_line_an_item_in_ascii(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows, chat_body(), chat_body())
    complete(batch, 0, '{"t":\n"é\u2028😀",\r\n"n":1.0}'.encode())
    response = get(client, rows, f"/{batch.id}/results?format=jsonl")
    assert response["Content-Type"] == "application/x-jsonl"
    assert response.getvalue() == (
        b'{"idx":0,"state":"completed","response":{"t": "\\u00e9\\u2028\\ud83d\\ude00",  "n":1.0}}\n'
        b'{"idx":1,"state":"available"}\n'
    )


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("br", False),
        ("", False),
    ],
)
def test_results_are_gzipped_only_when_that_is_accepted(
    client: Client, rows: SimpleNamespace, accepted: str, *, compressed: bool
) -> None:
    batch = submit(rows)
    response = get(client, rows, f"/{batch.id}/results", Accept_Encoding=accepted)
    body = response.getvalue()
    assert response.get("Content-Encoding") == ("gzip" if compressed else None)
    assert response["Vary"] == "Accept-Encoding"
    plain = gzip.decompress(body) if compressed else body
    assert json.loads(plain) == {"results": [{"idx": 0, "state": "available"}]}


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?items=maybe", "items"),
        ("?state=done", "state"),
        ("?state=", "state"),
        ("/results?state=done", "state"),
        ("/results?include=everything", "include"),
        ("/results?format=xml", "format"),
        ("/results?limit=0", "limit"),
        ("/results?limit=-1", "limit"),
        ("/results?limit=ten", "limit"),
        ("/results?limit=1&limit=2", "limit"),
        ("/results?after_idx=-1", "after_idx"),
        ("/results?after_idx=99999999999999999999", "after_idx"),
    ],
)
def test_a_bad_query_is_a_400_that_names_the_parameter(
    client: Client, rows: SimpleNamespace, query: str, param: str
) -> None:
    response = get(client, rows, f"/{submit(rows).id}{query}")
    assert (response.status_code, error_of(response)["param"]) == (400, param)


def test_unknown_query_parameters_are_ignored(client: Client, rows: SimpleNamespace) -> None:
    assert get(client, rows, f"/{submit(rows).id}?beta=true").status_code == 200


def test_a_list_holds_the_callers_own_relay_batches_newest_first_without_items(
    client: Client, rows: SimpleNamespace
) -> None:
    first, second = submit(rows), submit(rows)
    submit(make_caller(rows))
    Batch.objects.filter(id=submit(rows).id).update(dialect="chat")
    listed = json.loads(get(client, rows, "?dialect=relay").content)
    assert [batch["ID"] for batch in listed["batches"]] == [str(second.id), str(first.id)]
    assert listed["next_cursor"] is None
    assert listed["batches"][0] == status_of(client, rows, second, "?items=false")


def test_a_list_is_paged_to_its_end_each_batch_once(client: Client, rows: SimpleNamespace) -> None:
    ids = [str(submit(rows).id) for _ in range(5)]
    seen: list[str] = []
    cursor = ""
    for size in (2, 2, 1):
        page = json.loads(get(client, rows, f"?dialect=relay&limit=2{cursor}").content)
        assert len(page["batches"]) == size
        seen += [batch["ID"] for batch in page["batches"]]
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == ids[::-1]
    assert page["next_cursor"] is None


def test_a_list_takes_the_same_queries_for_one_batch_and_for_many(
    client: Client, rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(3):
        submit(rows)
    ended = submit(rows)
    complete(ended, 0, b"{}")
    end(ended)
    # Credential, batches, counts, waiting reasons, usage.
    with django_assert_num_queries(5):
        assert len(json.loads(get(client, rows, "?dialect=relay").content)["batches"]) == 4


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?dialect=messages", "dialect"),
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
        ("?after=x", "after"),
        ("?dialect=relay&limit=0", "limit"),
        ("?dialect=relay&limit=101", "limit"),
        ("?dialect=relay&cursor=x", "cursor"),
        ("?dialect=relay&cursor=é", "cursor"),
        ("?dialect=relay&cursor=%00", "cursor"),
        ("?dialect=relay&cursor=0192d1e5-7a3b-7c4d-8e5f-0123456789ab", "cursor"),
    ],
)
def test_a_bad_list_query_is_a_400_that_names_the_parameter(
    client: Client, rows: SimpleNamespace, query: str, param: str
) -> None:
    response = get(client, rows, query)
    assert (response.status_code, error_of(response)["param"]) == (400, param)


def test_a_batch_is_deleted_once_it_has_ended(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows)
    path = f"/v1/batches/{batch.id}"
    early = client.delete(path, headers=rows.headers)
    assert (early.status_code, early["x-should-retry"]) == (409, "false")
    complete(batch, 0, b"{}")
    end(batch)
    deleted = client.delete(path, headers=rows.headers)
    assert (deleted.status_code, deleted.content) == (204, b"")
    for response in (client.get(path, headers=rows.headers), client.delete(path, headers=rows.headers)):
        assert response.status_code == 404
    assert json.loads(get(client, rows, "?dialect=relay").content)["batches"] == []


WRONG_IDS = (
    "{unknown}",
    "{foreign}",
    "{upper}",
    "{hex}",
    "batch_{hex}",
    "msgbatch_{hex}",
    "x",
    "%00",
    "%ff",
    "%F0%9F%98%80",
    "{own}%0A",
    "..",
    "x" * 300,
)


@pytest.mark.parametrize("method", ["get", "delete", "get results", "post cancel"])
def test_foreign_unknown_and_malformed_ids_are_the_same_404_byte_for_byte(
    client: Client, rows: SimpleNamespace, method: str
) -> None:
    own, foreign = submit(rows), submit(make_caller(rows))
    names = {
        "own": own.id,
        "unknown": uuid.uuid4(),
        "foreign": foreign.id,
        "upper": str(own.id).upper(),
        "hex": own.id.hex,
    }
    verb, _, rest = method.partition(" ")
    answers = set()
    for wrong in WRONG_IDS:
        path = f"/v1/batches/{wrong.format(**names)}/{rest}".rstrip("/")
        response = client.generic(verb.upper(), path, headers=rows.headers)
        answers.add(
            (response.status_code, response.content, frozenset(without_ids(response.headers).items()))
        )
    assert len(answers) == 1
    assert next(iter(answers))[0] == 404
    assert Batch.objects.filter(deleted_at=None, cancel_initiated_at=None).count() == 2


def without_ids(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in ("request-id", "x-request-id")}


def lost_at_the_items(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    if "batches_batchitem" in sql:
        raise OperationalError("server closed the connection unexpectedly")
    return execute(sql, params, many, context)


@pytest.mark.parametrize("query", ["", "?format=jsonl"])
def test_a_database_that_goes_away_before_the_first_result_is_a_503_and_no_broken_200(
    client: Client, rows: SimpleNamespace, query: str
) -> None:
    batch = submit(rows)
    with connection.execute_wrapper(lost_at_the_items):
        response = get(client, rows, f"/{batch.id}/results{query}")
    assert (response.status_code, error_of(response)["code"]) == (503, "database_unavailable")
