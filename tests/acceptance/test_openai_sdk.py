"""OpenAI's unmodified SDK polls, lists and cancels chat batches; only the create is a plain request."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai.types import Batch

from batches.models import Batch as BatchRow
from tests.support.calls.collections import CHAT
from tests.support.proxies.cutting_proxy import CuttingProxy
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

TERMINAL = ("completed", "cancelled", "expired", "failed")


@pytest.fixture
def client(web: Web, deployment: Deployment, catalog: SimpleNamespace) -> Iterator[openai.OpenAI]:
    deployment.worker()
    deployment.sweeper()
    with openai.OpenAI(base_url=f"{web.origin}/v1", api_key=catalog.relay_key_value) as client:
        yield client


def created(client: openai.OpenAI, *custom_ids: str, **fields: Any) -> Batch:
    requests = [{"custom_id": one, "params": CHAT.params(one, **fields)} for one in custom_ids]
    return client.post("/batches", body={"requests": requests}, cast_to=Batch)


def until_terminal(client: openai.OpenAI, batch: Batch) -> Batch:
    deadline = time.monotonic() + 60
    while batch.status not in TERMINAL:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        batch = client.batches.retrieve(batch.id)
    return batch


def lines(client: openai.OpenAI, batch: Batch) -> list[dict[str, Any]]:
    content = client.get(f"/batches/{batch.id}/results", cast_to=openai.HttpxBinaryResponseContent)
    return [json.loads(line) for line in content.text.splitlines()]


def test_a_chat_batch_is_polled_to_its_end(client: openai.OpenAI, upstream: Upstream) -> None:
    batch = created(client, "a", "b")
    assert (batch.status, batch.object, batch.input_file_id) == ("in_progress", "batch", "")
    batch = until_terminal(client, batch)
    assert batch.status == "completed"
    assert batch.completed_at
    assert batch.request_counts
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (
        2,
        2,
        0,
    )
    assert batch.usage
    assert (batch.usage.input_tokens, batch.usage.input_tokens_details.cached_tokens) == (200, 80)
    assert (batch.usage.output_tokens, batch.usage.total_tokens) == (100, 300)
    found = lines(client, batch)
    assert [line["custom_id"] for line in found] == ["a", "b"]
    assert found[0]["result"] == {"type": "succeeded", "message": answers.CHAT}
    assert client.batches.cancel(batch.id) == batch


def test_what_is_wrong_in_params_is_an_errored_line(client: openai.OpenAI, upstream: Upstream) -> None:
    batch = until_terminal(client, created(client, "a", stream=True))
    assert batch.status == "completed"
    assert batch.request_counts
    assert batch.request_counts.failed == 1
    error = lines(client, batch)[0]["result"]["error"]
    assert error["type"] == "invalid_request_error"
    assert "stream" in error["message"]
    assert upstream.requests == []


def test_chat_batches_are_listed_and_cancelled(client: openai.OpenAI, upstream: Upstream) -> None:
    upstream.handler = lambda _: answers.hang()
    ids = [created(client, "a").id for _ in range(5)][::-1]
    assert [batch.id for batch in client.batches.list(limit=2)] == ids
    upstream.wait_for(lambda up: up.in_flight == 5)
    cancelling = client.batches.cancel(ids[0])
    assert cancelling.status in ("cancelling", "cancelled")
    assert cancelling.cancelling_at
    with pytest.raises(openai.ConflictError):
        lines(client, client.batches.retrieve(ids[1]))
    assert until_terminal(client, cancelling).status == "cancelled"
    assert lines(client, cancelling) == [{"custom_id": "a", "result": {"type": "canceled"}}]
    for batch_id in ids[1:]:
        client.batches.cancel(batch_id)


def test_a_create_whose_responses_are_dropped_is_one_batch(web: Web, client: openai.OpenAI) -> None:
    """The SDK repeats the request by itself, twice by default."""
    with CuttingProxy(web.port) as proxy:
        proxied = client.with_options(base_url=f"{proxy.origin}/v1")
        proxy.drop(2)
        batch = created(proxied, "a")
    assert proxy.drops == 0
    assert [row.id.hex for row in BatchRow.objects.all()] == [batch.id.removeprefix("batch_")]
    assert client.batches.retrieve(batch.id).id == batch.id


def test_two_creates_alike_are_two_batches(web: Web, client: openai.OpenAI) -> None:
    """Also when the response of each is dropped."""
    assert created(client, "a").id != created(client, "a").id
    with CuttingProxy(web.port) as proxy:
        proxied = client.with_options(base_url=f"{proxy.origin}/v1")
        proxy.drop(1)
        third = created(proxied, "a").id
        proxy.drop(1)
        assert created(proxied, "a").id != third
    assert BatchRow.objects.count() == 4
