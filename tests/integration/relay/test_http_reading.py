"""Status, list, cancel and delete in Relay's dialect."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now

from batches.completion.cancel import cancel_batch
from batches.models import Batch, BatchItem
from tests.support.calls.relay_calls import error_of, get, status_of
from tests.support.rows.catalog import make_caller
from tests.support.rows.item_outcomes import complete, discard, end
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db


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
    waiting.update(published_at=None, claim_no=1, not_before=Now(), waiting_reason="rate_limit")
    assert status_of(client, rows, batch)["waiting"] == {"rate_limit": 2}


def test_items_can_be_left_out_or_filtered_by_state(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows, chat_body(), chat_body(), chat_body())
    discard(batch, 1, error_code="timeout", error="timed out")
    assert "items" not in status_of(client, rows, batch, "?items=false")
    assert status_of(client, rows, batch, "?state=discarded")["items"] == [{"idx": 1, "state": "discarded"}]
    assert status_of(client, rows, batch, "?state=expired")["items"] == []
    assert len(status_of(client, rows, batch, "?state=discarded,available")["items"]) == 3


def test_every_state_of_an_item_is_shown_by_its_name(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows, *[chat_body()] * 6)
    BatchItem.objects.filter(batch=batch, idx=1).update(state="running", worker_id=uuid.uuid4())
    complete(batch, 2, b"{}")
    discard(batch, 3, error_code="timeout", error="timed out")
    for idx, state in ((4, "cancelled"), (5, "expired")):
        BatchItem.objects.filter(batch=batch, idx=idx).update(state=state, finished_at=Now())
    items = [(item["idx"], item["state"]) for item in status_of(client, rows, batch)["items"]]
    names = ("available", "running", "completed", "discarded", "cancelled", "expired")
    assert items == list(enumerate(names))
    for idx, state in enumerate(names):
        only = status_of(client, rows, batch, f"?state={state}")["items"]
        assert only == [{"idx": idx, "state": state}]


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
    # Credential, batch, counts with waiting reasons, usage, items.
    with django_assert_num_queries(5):
        status_of(client, rows, batch)
    with django_assert_num_queries(4):
        status_of(client, rows, batch, "?items=false")
    BatchItem.objects.filter(batch=batch).update(state="expired", finished_at=Now())
    end(batch)
    with django_assert_num_queries(3):
        status_of(client, rows, batch, "?items=false")


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
    # Credential, batches, counts with waiting reasons, usage.
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
