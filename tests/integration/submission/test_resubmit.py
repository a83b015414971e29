"""`POST /v1/batches/{id}/retry`: the failed items of a finished batch, as a new batch of their caller's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from batches.completion.delete import delete_batch
from batches.models import Batch, BatchItem
from batches.payloads import open_store
from routing.models import Policy
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.item_outcomes import complete, discard, end
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def catalog() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


@pytest.fixture
def batch(catalog: SimpleNamespace) -> Batch:
    """Four items: one completed, two discarded with different codes, one cancelled."""
    bodies = [chat_body(f"item {number}") for number in range(4)]
    batch = submit(catalog, *bodies, max_attempts=2, on_rate_limit="wait", metadata={"job": "night"})
    complete(batch, 0, b"{}")
    discard(batch, 1, error_code="timeout", error="x")
    discard(batch, 2, error_code="upstream_status", error="x")
    BatchItem.objects.filter(batch_id=batch.id, idx=3).update(
        state="cancelled", error_code="cancelled", finished_at=batch.created_at
    )
    end(batch)
    return batch


def retry(client: Client, batch: Batch, catalog: SimpleNamespace, body: Any = None, **headers: str) -> Any:
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return client.post(
        f"/v1/batches/{batch.id}/retry",
        data,
        content_type="application/json",
        headers=catalog.headers | headers,
    )


def requests_of(answer: Any) -> list[bytes]:
    new = Batch.objects.get(id=answer.json()["id"])
    rows = BatchItem.objects.of(new).values_list("request_offset", "request_length")
    return [open_store().read_request(new.id, offset=offset, length=length) for offset, length in rows]


def test_every_discarded_item_is_sent_again_byte_for_byte(
    client: Client, batch: Batch, catalog: SimpleNamespace
) -> None:
    answer = retry(client, batch, catalog)
    assert answer.status_code == 202
    assert answer.json()["total_items"] == 2
    assert requests_of(answer) == [chat_body("item 1"), chat_body("item 2")]
    new = Batch.objects.get(id=answer.json()["id"])
    assert (new.max_attempts, new.on_rate_limit) == (2, "wait")
    assert new.metadata == {"job": "night", "retry_of": str(batch.id)}


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        ({"error_code": "timeout"}, [1]),
        ({"error_code": ["timeout", "cancelled"]}, [1, 3]),
        ({"idx": [2]}, [2]),
        ({"idx": 2, "error_code": "upstream_status"}, [2]),
        ({"unknown": 1}, [1, 2]),
        (b'\xef\xbb\xbf{"idx":1}', [1]),
        ({}, [1, 2]),
    ],
)
def test_a_selection_narrows_it(
    client: Client, batch: Batch, catalog: SimpleNamespace, selection: Any, numbers: list[int]
) -> None:
    answer = retry(client, batch, catalog, selection)
    assert requests_of(answer) == [chat_body(f"item {number}") for number in numbers]


@pytest.mark.parametrize(
    "selection",
    [
        {"idx": [0]},
        {"error_code": "no_such"},
        {"idx": []},
        {"custom_id": "\0"},
        {"idx": 2**40},
        {"idx": [2**70]},
    ],
)
def test_nothing_that_failed_is_refused(
    client: Client, batch: Batch, catalog: SimpleNamespace, selection: dict[str, Any]
) -> None:
    answer = retry(client, batch, catalog, selection)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "nothing_failed")


def test_a_list_far_longer_than_the_batch_is_no_work_of_the_databases(
    client: Client, batch: Batch, catalog: SimpleNamespace
) -> None:
    with CaptureQueriesContext(connection) as queries:
        answer = retry(client, batch, catalog, {"idx": list(range(50_000))})
    assert requests_of(answer) == [chat_body("item 1"), chat_body("item 2")]
    assert max(len(query["sql"]) for query in queries) < 10_000


@pytest.mark.parametrize(
    "selection", [{"idx": [1] * 50_001}, {"error_code": ["timeout"] * 50_001}, {"custom_id": ["a"] * 50_001}]
)
def test_a_list_longer_than_any_batch_is_refused(
    client: Client, batch: Batch, catalog: SimpleNamespace, selection: dict[str, Any]
) -> None:
    answer = retry(client, batch, catalog, selection)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], [error["param"]]) == (400, "too_many_items", list(selection))
    assert "at most 50000" in error["message"]


def test_a_list_may_be_as_long_as_a_batch_of_a_time_with_a_higher_limit(
    client: Client, batch: Batch, catalog: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_BATCH_MAX_ITEMS = settings.RELAY_CUSTOM_ID_MAX_ITEMS = 1
    assert retry(client, batch, catalog, {"idx": [0, 1, 2, 3]}).json()["total_items"] == 2
    assert retry(client, batch, catalog, {"idx": [0, 1, 2, 3, 4]}).status_code == 400


def test_commas_within_ids_are_none_between_them(
    client: Client, batch: Batch, catalog: SimpleNamespace
) -> None:
    codes = [*[f'a,,,\\",[{number}]' for number in range(20_000)], "timeout"]
    assert retry(client, batch, catalog, {"error_code": codes}).json()["total_items"] == 1


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ([], "must be a JSON object"),
        (3, "must be a JSON object"),
        ({"idx": "one"}, "`idx` must be a whole number"),
        ({"error_code": 7}, "`error_code` must be a string"),
        ({"error_code": ["timeout", 7]}, "`error_code` must be a string"),
        ({"custom_id": {"a": "b"}}, "`custom_id` must be a string"),
        ({"custom_id": [None]}, "`custom_id` must be a string"),
        ({"idx": [1, "2"]}, "`idx` must be a whole number"),
        (b'{"z":"\xff"}', "not valid UTF-8 (byte 6)"),
        (b'{"error_code":"\xff"}', "not valid UTF-8 (byte 15)"),
        (b'{"z":' + b"[" * 20_000 + b"]" * 20_000 + b"}", "nested too deep"),
        (b'{"z":' + b"[" * 1000 + b"]" * 1000 + b"}", "nested too deep"),
    ],
)
def test_a_selection_of_the_wrong_kind_is_refused(
    client: Client, batch: Batch, catalog: SimpleNamespace, selection: Any, message: str
) -> None:
    answer = retry(client, batch, catalog, selection)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]
    assert Batch.objects.count() == 1


def test_before_the_end_it_is_a_conflict(client: Client, catalog: SimpleNamespace) -> None:
    answer = retry(client, submit(catalog), catalog)
    assert answer.status_code == 409
    assert answer.headers["x-should-retry"] == "false"


def test_a_stranger_finds_nothing(client: Client, batch: Batch, catalog: SimpleNamespace) -> None:
    stranger = make_caller(catalog)
    assert retry(client, batch, stranger).status_code == 404


def test_an_idempotency_key_gives_the_same_new_batch(
    client: Client, batch: Batch, catalog: SimpleNamespace
) -> None:
    answers = [retry(client, batch, catalog, **{"Idempotency-Key": "k"}).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert Batch.objects.count() == 2


def test_an_idempotency_key_gives_the_same_answer_after_the_old_batch_is_gone(
    client: Client, batch: Batch, catalog: SimpleNamespace
) -> None:
    key = {"Idempotency-Key": "k"}
    first = retry(client, batch, catalog, **key)
    delete_batch(batch)
    again = retry(client, batch, catalog, **key)
    assert (again.status_code, again.content) == (202, first.content)
    assert retry(client, batch, catalog, {"idx": 1}, **key).status_code == 409
    assert retry(client, batch, catalog).status_code == 404
    assert retry(client, batch, make_caller(catalog), **key).status_code == 404
    Policy.objects.update(enabled=False)
    assert retry(client, batch, catalog, **key).content == first.content
    assert retry(client, batch, catalog).status_code == 403


def test_without_the_payloads_it_says_so_and_stores_nothing(
    client: Client, batch: Batch, catalog: SimpleNamespace
) -> None:
    open_store().discard(batch.id)
    assert retry(client, batch, catalog).status_code == 503
    assert Batch.objects.count() == 1
