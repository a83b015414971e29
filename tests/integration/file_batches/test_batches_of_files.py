"""Batches of files over HTTP: creating, listing, cancelling, retrying; and what a stranger sees."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from batches.models import Batch, BatchItem
from batches.publishing.publish import drain_publisher
from batches.sweeper.cleanup import delete_expired_batches
from tests.support.calls.collections import CHAT, stored_requests
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.file_batches import (
    create,
    finalized,
    line,
    make_file,
    path_of,
    post,
    status,
    validated,
)
from tests.support.rows.item_outcomes import complete, discard, end

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def test_a_batch_is_answered_at_once_with_every_field(client: Client, rows: SimpleNamespace) -> None:
    file = make_file(rows, line())
    found = post(client, rows, input_file_id=file.public_id, metadata={"job": "night"}).json()
    assert found.pop("id").startswith("batch_")
    assert found.pop("expires_at") == found.pop("created_at") + 86_400
    nulls = ("model", "errors", "output_file_id", "error_file_id", "usage", "in_progress_at", "failed_at")
    times = ("finalizing_at", "completed_at", "expired_at", "cancelling_at", "cancelled_at")
    assert found == {
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "input_file_id": file.public_id,
        "completion_window": "24h",
        "status": "validating",
        "request_counts": {"total": 0, "completed": 0, "failed": 0},
        "metadata": {"job": "night"},
        **dict.fromkeys(nulls + times),
    }


def test_without_metadata_it_is_an_empty_object(client: Client, rows: SimpleNamespace) -> None:
    file = make_file(rows, line())
    assert post(client, rows, input_file_id=file.public_id).json()["metadata"] == {}


BAD_PARAMETERS: dict[str, list[Any]] = {
    "endpoint": [None, "", "/v1/completions", "/v1/images/generations", 1, []],
    "completion_window": [None, "", "1h", 24, "24H"],
    "output_expires_after": [
        *([], "3600", {"seconds": 3600}, {"anchor": "created_at"}),
        *({"anchor": "created_at", "seconds": seconds} for seconds in (3599, 2_592_001, "3600", 1.5)),
        {"anchor": "last_active_at", "seconds": 3600},
    ],
    "metadata": [{"k": 1}, {"k" * 65: "v"}, {str(n): "v" for n in range(17)}, []],
    "input_file_id": [None, "", "file-1", "x" * 5000, 1, [], f"file-{'0' * 32}"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_PARAMETERS.items() for value in values]
)
def test_a_wrong_parameter_is_named_at_once(
    client: Client, rows: SimpleNamespace, name: str, value: Any
) -> None:
    file = make_file(rows, line())
    response = post(client, rows, **({"input_file_id": file.public_id} | {name: value}))
    assert (response.status_code, response.json()["error"]["param"]) == (400, name)
    assert Batch.objects.count() == 0


def test_every_supported_endpoint_is_named(client: Client, rows: SimpleNamespace) -> None:
    response = post(client, rows, input_file_id="file-1", endpoint="/v1/completions")
    assert "/v1/chat/completions, /v1/responses, /v1/embeddings" in response.json()["error"]["message"]


def test_a_file_of_a_stranger_or_of_another_purpose_is_as_unknown_as_none(
    client: Client, rows: SimpleNamespace
) -> None:
    stranger = make_caller(rows)
    foreign, output = make_file(stranger, line()), make_file(rows, line(), purpose="batch_output")
    answers = [
        post(client, rows, input_file_id=file_id)
        for file_id in (foreign.public_id, output.public_id, f"file-{'0' * 32}")
    ]
    assert {answer.status_code for answer in answers} == {400}
    assert len({answer.content for answer in answers}) == 1


def test_the_same_key_gives_the_same_batch(client: Client, rows: SimpleNamespace) -> None:
    given = {
        "input_file_id": make_file(rows, line()).public_id,
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    headers = rows.headers | {"Idempotency-Key": "one"}
    answers = [
        client.post("/v1/batches", given, content_type="application/json", headers=headers) for _ in range(2)
    ]
    assert answers[0].content == answers[1].content
    assert Batch.objects.count() == 1
    other = client.post(
        "/v1/batches", given | {"metadata": {"a": "b"}}, content_type="application/json", headers=headers
    )
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")


def test_the_list_holds_batches_of_files_and_of_chat_in_one_order_and_no_others(
    client: Client, rows: SimpleNamespace
) -> None:
    batches = [create(client, rows, line()), CHAT.create(client, rows), create(client, rows, line())]
    client.post(
        "/v1/batches",
        {"shape": "openai", "requests": [{"model": "echo-1"}]},
        content_type="application/json",
        headers=rows.headers,
    )
    drain_publisher()
    ids = [f"batch_{batch.id.hex}" for batch in reversed(batches)]
    whole = client.get("/v1/batches", headers=rows.headers).json()
    assert [one["id"] for one in whole["data"]] == ids
    assert ["results_url" in one for one in whole["data"]] == [False, True, False]
    assert (whole["first_id"], whole["last_id"], whole["has_more"]) == (ids[0], ids[2], False)
    first = client.get("/v1/batches?limit=1", headers=rows.headers).json()
    assert ([one["id"] for one in first["data"]], first["has_more"]) == (ids[:1], True)
    rest = client.get(f"/v1/batches?after={first['last_id']}&limit=100", headers=rows.headers).json()
    assert [one["id"] for one in rest["data"]] == ids[1:]
    for dialect, expected in (("openai", [ids[0], ids[2]]), ("chat", [ids[1]])):
        found = client.get(f"/v1/batches?dialect={dialect}", headers=rows.headers).json()
        assert [one["id"] for one in found["data"]] == expected


def test_a_list_takes_few_queries(
    client: Client, rows: SimpleNamespace, django_assert_max_num_queries: Any
) -> None:
    for _ in range(3):
        create(client, rows, line())
        CHAT.create(client, rows)
        batch = validated(client, rows)
        complete(batch, 0, b"{}")
        end(batch)
        finalized(client, rows, batch)
    with django_assert_max_num_queries(12):
        assert len(client.get("/v1/batches", headers=rows.headers).json()["data"]) == 9


@pytest.mark.parametrize("state", ["validating", "in_progress"])
def test_a_cancel_says_when_it_was_and_may_be_repeated_until_the_end(
    client: Client, rows: SimpleNamespace, state: str
) -> None:
    batch = create(client, rows, line()) if state == "validating" else validated(client, rows)
    if state == "in_progress":  # one item runs on
        BatchItem.objects.filter(batch=batch).update(state="running", worker_id=batch.id)
    first = client.post(path_of(batch, "/cancel"), headers=rows.headers)
    assert (first.status_code, first.json()["status"]) == (200, "cancelling")
    assert first.json()["cancelling_at"]
    assert client.post(path_of(batch, "/cancel"), headers=rows.headers).json() == first.json()


def test_a_cancel_of_a_finished_batch_is_a_conflict(client: Client, rows: SimpleNamespace) -> None:
    batch = validated(client, rows)
    complete(batch, 0, b"{}")
    end(batch)
    for _ in ("finalizing", "completed"):
        response = client.post(path_of(batch, "/cancel"), headers=rows.headers)
        assert (response.status_code, response["x-should-retry"]) == (409, "false")
        finalized(client, rows, batch)
    assert status(client, rows, batch)["status"] == "completed"


def test_failed_requests_are_retried_as_a_batch_that_runs_at_once(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = validated(client, rows, *"abc", metadata={"job": "night"})
    complete(batch, 0, b"{}")
    for idx, code in ((1, "timeout"), (2, "model_not_found")):
        discard(batch, idx, error_code=code, error="failed")
    end(batch)
    early = client.post(path_of(batch, "/retry"), {}, content_type="application/json", headers=rows.headers)
    assert early.status_code == 409
    finalized(client, rows, batch)
    response = client.post(
        path_of(batch, "/retry"),
        {"error_code": "timeout"},
        content_type="application/json",
        headers=rows.headers,
    )
    found = response.json()
    assert (response.status_code, found["status"], found["in_progress_at"] is None) == (
        200,
        "in_progress",
        False,
    )
    assert found["metadata"] == {"job": "night", "retry_of": f"batch_{batch.id.hex}"}
    assert found["request_counts"]["total"] == 1
    drain_publisher()
    new = Batch.objects.newest_first()[0]
    assert [item.custom_id for item in BatchItem.objects.of(new)] == ["b"]
    assert stored_requests(new) == stored_requests(batch)[1:2]
    discard(new, 0, error_code="timeout", error="again")
    end(new)
    assert finalized(client, rows, new)["status"] == "completed"


@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("get", ""),
        ("delete", ""),
        ("get", "/results"),
        ("post", "/cancel"),
        ("post", "/retry"),
    ],
)
def test_a_stranger_finds_nothing(client: Client, rows: SimpleNamespace, method: str, rest: str) -> None:
    batch, stranger = create(client, rows, line()), make_caller(rows)
    unknown = Batch(id="0192d1e5-7a3b-7c4d-8e5f-0123456789ab", dialect="openai")
    unknown.clean_fields(exclude=[field.name for field in Batch._meta.fields if field.name != "id"])
    answers = [
        getattr(client, method)(path_of(one, rest), headers=stranger.headers) for one in (batch, unknown)
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert json.loads(answers[0].content) == json.loads(answers[1].content)
    assert client.get("/v1/batches", headers=stranger.headers).json()["data"] == []


def test_retention_leaves_a_batch_whose_files_are_still_to_be_written(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_BATCH_RETENTION_DAYS = 1
    batch = validated(client, rows)
    complete(batch, 0, b"{}")
    end(batch)
    Batch.objects.filter(id=batch.id).update(ended_at=batch.created_at - timedelta(days=2))
    delete_expired_batches()
    assert finalized(client, rows, batch)["status"] == "completed"
    delete_expired_batches()
    assert Batch.objects.get(id=batch.id).deleted_at
