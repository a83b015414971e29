"""The upstream's name for a call: from its answer's headers to the item, its results and the admin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem
from batches.results.result_rows import ResultFilter, iter_pages
from relaybatch.ids import uuid7
from routing.upstream.send import send
from tests.support.calls.upstream_calls import call_of
from tests.support.rows.admin_rows import owner_client
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping
    from types import SimpleNamespace

    from pytest_django import Settings

    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


def chat(headers: Mapping[str, str]) -> Answer:
    return answers.json(answers.CHAT, headers=headers)


def failed(code: int, request_id: str) -> Answer:
    return answers.status(code, headers={"x-request-id": request_id})


def run(item_id: uuid.UUID) -> BatchItem:
    BatchItem.objects.filter(id=item_id).update(not_before=None, published_at=timezone.now())
    execute_item(BatchItem.objects.get(id=item_id).id, in_flight=InFlightItems(uuid7(), slots=8))
    return BatchItem.objects.get(id=item_id)


def run_new(catalog: SimpleNamespace, *, attempts: int = 1) -> BatchItem:
    batch = submit(catalog, chat_body(), max_attempts=attempts)
    return run(BatchItem.objects.get(batch_id=batch.id).id)


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        ({"x-request-id": "req_1"}, "req_1"),
        ({"request-id": "req_2", "X-Request-Id": "req_1"}, "req_1"),
        ({"Request-Id": "req_2"}, "req_2"),
        ({"x-request-id": "two words", "request-id": "req_2"}, "req_2"),
        ({"x-request-id": "é"}, ""),
        ({"x-request-id": "x" * 200}, "x" * 200),
        ({"x-request-id": "x" * 201}, ""),
        ({}, ""),
    ],
)
def test_a_completed_item_keeps_it(
    catalog: SimpleNamespace, upstream: Upstream, headers: dict[str, str], kept: str
) -> None:
    upstream.script(chat(headers))
    item = run_new(catalog)
    assert (item.state, item.upstream_request_id) == ("completed", kept)


def test_an_item_whose_response_is_an_object_of_its_own_keeps_it(
    catalog: SimpleNamespace, upstream: Upstream, settings: Settings
) -> None:
    settings.RELAY_BATCH_INLINE_RESPONSE_BYTES = 0
    upstream.script(chat({"x-request-id": "req_1"}))
    item = run_new(catalog)
    assert (item.state, item.upstream_request_id) == ("completed", "req_1")


def test_an_item_that_waits_for_another_host_key_keeps_it(upstream: Upstream) -> None:
    catalog = make_catalog(upstream.url, host_key_values=("key-one",))
    upstream.script(failed(403, "req_1"))
    batch = submit(catalog, chat_body(), on_rate_limit="wait")
    item = run(BatchItem.objects.get(batch_id=batch.id).id)
    assert (item.state, item.excused, item.upstream_request_id) == ("available", 1, "req_1")


@pytest.mark.parametrize(
    "answer",
    [
        failed(400, "req_1"),
        failed(503, "req_1"),
        answers.body(b"[]", headers={"x-request-id": "req_1"}),
        answers.body(b"x" * 10, content_type="text/event-stream", headers={"x-request-id": "req_1"}),
        answers.raw(b"HTTP/1.1 200 OK\r\nx-request-id: req_1\r\nContent-Length: 9\r\n\r\n{"),
    ],
)
def test_a_failed_item_keeps_it(catalog: SimpleNamespace, upstream: Upstream, answer: Answer) -> None:
    upstream.script(answer)
    item = run_new(catalog)
    assert (item.state, item.upstream_request_id) == ("discarded", "req_1")


@pytest.mark.parametrize(
    ("second", "state", "kept"),
    [
        (chat({"x-request-id": "req_2"}), "completed", "req_2"),
        (chat({}), "completed", ""),
        (failed(400, "req_2"), "discarded", "req_2"),
        (answers.close(), "discarded", ""),
    ],
)
def test_each_attempt_overwrites_it_with_its_own(
    catalog: SimpleNamespace, upstream: Upstream, second: Answer, state: str, kept: str
) -> None:
    upstream.script(failed(408, "req_1"), second)
    waiting = run_new(catalog, attempts=2)
    assert (waiting.state, waiting.upstream_request_id) == ("available", "req_1")
    item = run(waiting.id)
    assert (item.state, item.upstream_request_id) == (state, kept)


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        ([failed(429, "req_1"), chat({"x-request-id": "req_2"})], "req_2"),
        ([failed(500, "req_1"), failed(429, "req_2"), failed(503, "req_3")], "req_3"),
        ([failed(500, "req_1"), chat({})], ""),
        ([failed(500, "req_1"), answers.close(), failed(400, "req_3")], "req_3"),
        ([failed(500, "req_1"), failed(500, "req_2"), answers.close()], ""),
    ],
)
def test_of_several_host_keys_it_is_the_last_answers(
    upstream: Upstream, script: list[Answer], kept: str
) -> None:
    catalog = make_catalog(upstream.url, host_key_values=("key-one", "key-two", "key-three"))
    upstream.script(*script)
    outcome = send(call_of(catalog))
    assert (len(upstream.requests), outcome.request_id) == (len(script), kept)


def test_a_call_that_times_out_has_none_of_an_earlier_answer(upstream: Upstream) -> None:
    catalog = make_catalog(upstream.url, host_key_values=("key-one", "key-two"))
    upstream.script(failed(500, "req_1"), answers.hang())
    outcome = send(call_of(catalog, seconds=0.5))
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.request_id) == ("timeout", "")


def test_a_host_keys_secret_in_it_is_masked(upstream: Upstream) -> None:
    secret = "sk-0123456789abcdef"
    catalog = make_catalog(upstream.url, host_key_values=(secret,))
    upstream.script(
        chat({"x-request-id": f"req/{secret}"}), failed(400, "sk-012345"), failed(401, "sk-0****cdef")
    )
    assert [send(call_of(catalog)).request_id for _ in range(3)] == ["req/***", "***", "***"]


def test_result_rows_have_it(catalog: SimpleNamespace, upstream: Upstream) -> None:
    upstream.script(chat({"x-request-id": "req_1"}))
    item = run_new(catalog)
    ((row,),) = iter_pages(item.batch_id, ResultFilter())
    assert row.upstream_request_id == "req_1"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (failed(400, "req_header"), "req_header"),
        (
            answers.json(
                {"type": "error", "error": {"type": "api_error", "message": "no"}, "request_id": "req_body"},
                status=400,
                headers={"request-id": "req_header"},
            ),
            "req_body",
        ),
        (answers.body(b"[]", headers={"request-id": "req_header"}), "req_header"),
        (answers.status(400), None),
    ],
)
def test_an_errored_line_names_it(
    catalog: SimpleNamespace, upstream: Upstream, answer: Answer, expected: str | None
) -> None:
    upstream.script(answer)
    batch = submit(catalog, chat_body(), dialect="chat", custom_ids=("a",))
    item = run(BatchItem.objects.get(batch_id=batch.id).id)
    client = Client(headers=catalog.headers)
    (listed,) = client.get("/v1/batches").json()["data"]
    lines = b"".join(client.get(f"/v1/batches/{listed['id']}/results"))
    assert json.loads(lines)["result"]["error"]["request_id"] == (expected or str(item.id))


def test_the_admins_page_of_an_item_shows_it(catalog: SimpleNamespace, upstream: Upstream) -> None:
    upstream.script(chat({"x-request-id": "req_shown"}))
    item = run_new(catalog)
    page = owner_client().get(f"/admin/batches/batchitem/{item.id}/change/").content.decode()
    assert "req_shown" in page
