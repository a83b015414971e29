"""Anthropic's unmodified SDK with default options: batches through a web process, workers and a sweeper."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from batches.models import Batch
from tests.support.calls.collections import MESSAGES
from tests.support.proxies.cutting_proxy import CuttingProxy
from tests.support.servers.deployment import wait_until
from tests.support.upstream import upstream_responses as answers
from tests.support.upstream.prompted_responses import ODD, answer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

POLL_SECONDS = 0.1
MAX_SECONDS = 60


@pytest.fixture
def client(
    web: Web, deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> Iterator[anthropic.Anthropic]:
    upstream.handler = answer
    deployment.worker()
    deployment.sweeper()
    with anthropic.Anthropic(base_url=web.origin, api_key=catalog.relay_key_value) as client:
        yield client


def requests(*texts: str, size: int = 0) -> list[Any]:
    return [{"custom_id": text, "params": MESSAGES.params(text.ljust(size))} for text in texts]


def until_ended(batches: Any, batch: Any) -> Any:
    """A plain poll loop: no exception is caught."""
    deadline = time.monotonic() + MAX_SECONDS
    while batch.processing_status != "ended":
        assert time.monotonic() < deadline
        time.sleep(POLL_SECONDS)
        batch = batches.retrieve(batch.id)
    return batch


def calls(web: Web, part: str) -> int:
    lines = [json.loads(line) for line in web.log().splitlines()]
    served = [line for line in lines if line.get("event") == "request served"]
    return sum(part in f"{line['method']} {line['path']}" for line in served)


@pytest.mark.parametrize("namespace", ["messages", "beta"])
def test_a_batch_goes_from_create_to_delete(
    client: anthropic.Anthropic, web: Web, upstream: Upstream, namespace: str
) -> None:
    batches: Any = client.messages.batches if namespace == "messages" else client.beta.messages.batches
    upstream.handler = lambda _: answers.hang()
    betas = {} if namespace == "messages" else {"betas": ["one-1", "two-2"]}
    batch = batches.create(requests=requests("good", "odd", "refuse"), **betas)
    assert batch.request_counts.processing == 3
    upstream.wait_for(lambda up: up.in_flight == 3)
    seen = calls(web, "/v1/")
    with pytest.raises(anthropic.AnthropicError, match="No `results_url`"):
        batches.results(batch.id)
    assert calls(web, "/v1/") == seen + 1
    with pytest.raises(anthropic.ConflictError):
        batches.delete(batch.id)
    assert calls(web, "/v1/") == seen + 2
    upstream.handler = answer
    upstream.hang_up()

    batch = until_ended(batches, batch)
    assert batch.results_url == f"{web.origin}/v1/messages/batches/{batch.id}/results"
    assert (batch.request_counts.succeeded, batch.request_counts.errored) == (2, 1)
    results = {line.custom_id: line.result for line in batches.results(batch.id)}
    assert list(results) == ["good", "odd", "refuse"]
    assert results["good"].message.content[0].text == "echo good"
    assert results["good"].message.usage.output_tokens == 50
    assert results["odd"].message.content[0].text == ODD
    assert results["refuse"].error.type == "error"
    assert results["refuse"].error.error.type == "invalid_request_error"
    assert results["refuse"].error.error.message == "max_tokens: too many"
    assert results["refuse"].error.request_id == "req_011"
    assert batches.cancel(batch.id) == batch

    deleted = batches.delete(batch.id)
    assert (deleted.id, deleted.type) == (batch.id, "message_batch_deleted")
    with pytest.raises(anthropic.NotFoundError):
        batches.retrieve(batch.id)
    sent = {request.headers["anthropic-version"] for request in upstream.requests}
    assert sent == {client.default_headers["anthropic-version"]}
    if namespace == "beta":
        assert "one-1,two-2" in upstream.requests[0].headers["anthropic-beta"]


def test_a_batch_is_cancelled_and_listed_page_by_page(
    client: anthropic.Anthropic, upstream: Upstream
) -> None:
    batches = client.messages.batches
    hanging = batches.create(requests=requests("hang", "good"))
    upstream.wait_for(lambda up: up.in_flight == 1)
    wait_until(lambda: batches.retrieve(hanging.id).processing_status == "in_progress", lambda: "it ended")
    cancelled = batches.cancel(hanging.id)
    assert cancelled.cancel_initiated_at
    assert cancelled.processing_status in ("canceling", "ended")
    ended = until_ended(batches, cancelled)
    assert ended.request_counts.canceled >= 1
    assert {line.result.type for line in batches.results(hanging.id)} <= {"canceled", "succeeded"}

    ids = [batches.create(requests=requests("good")).id for _ in range(4)]
    newest_first = [*ids[::-1], hanging.id]
    assert [batch.id for batch in batches.list(limit=2)] == newest_first
    assert [batch.id for batch in batches.list(limit=2, after_id=ids[-1])] == newest_first[1:]
    # Page by page towards the newest, each page newest first.
    before = [batch.id for batch in batches.list(limit=2, before_id=hanging.id)]
    assert before == [ids[1], ids[0], ids[3], ids[2]]
    for batch_id in ids:
        until_ended(batches, batches.retrieve(batch_id))
    for batch in batches.list(limit=2):
        batches.delete(batch.id)
    assert list(batches.list()) == []


def test_the_async_client_does_the_same(web: Web, client: anthropic.Anthropic) -> None:
    async def whole_life() -> None:
        async with anthropic.AsyncAnthropic(base_url=web.origin, api_key=client.api_key) as other:
            batches = other.messages.batches
            batch = await batches.create(requests=requests("good", "odd"))
            with contextlib.suppress(anthropic.AnthropicError):  # it may have ended already
                await batches.results(batch.id)
            while batch.processing_status != "ended":
                await asyncio.sleep(POLL_SECONDS)
                batch = await batches.retrieve(batch.id)
            texts = [line.result.message.content[0].text async for line in await batches.results(batch.id)]  # type: ignore[union-attr]
            assert texts == ["echo good", ODD]
            assert [found.id async for found in batches.list(limit=1)] == [batch.id]
            assert (await batches.cancel(batch.id)).processing_status == "ended"
            assert (await batches.delete(batch.id)).id == batch.id

    asyncio.run(asyncio.wait_for(whole_life(), MAX_SECONDS))
    assert not Batch.objects.undeleted().exists()


def test_bad_submissions_raise_the_sdks_own_errors(client: anthropic.Anthropic, web: Web) -> None:
    batches = client.messages.batches
    with pytest.raises(anthropic.BadRequestError, match=r"requests\[1\].custom_id: is the same"):
        batches.create(requests=requests("good", "good"))
    with pytest.raises(anthropic.RequestTooLargeError, match="at most 102400"):
        batches.create(requests=requests("x" * 64, size=110_000))
    assert calls(web, "POST /v1/messages/batches") == 2
    with (
        anthropic.Anthropic(base_url=web.origin, api_key="sk-rb-unknown") as stranger,
        pytest.raises(anthropic.AuthenticationError),
    ):
        stranger.messages.batches.list()


@pytest.mark.parametrize("namespace", ["messages", "beta"])
def test_a_create_whose_responses_are_dropped_is_one_batch(
    web: Web, client: anthropic.Anthropic, namespace: str
) -> None:
    """The SDK repeats the request by itself, twice by default."""
    with CuttingProxy(web.port) as proxy:
        proxied = client.with_options(base_url=proxy.origin)
        batches: Any = proxied.messages.batches if namespace == "messages" else proxied.beta.messages.batches
        proxy.drop(2)
        batch = batches.create(requests=requests("good"))
    assert proxy.drops == 0
    assert [row.id.hex for row in Batch.objects.all()] == [batch.id.removeprefix("msgbatch_")]
    assert client.messages.batches.retrieve(batch.id).id == batch.id


def test_two_creates_alike_are_two_batches(web: Web, client: anthropic.Anthropic) -> None:
    """Also when the response of each is dropped."""
    batches = client.messages.batches
    assert batches.create(requests=requests("good")).id != batches.create(requests=requests("good")).id
    with CuttingProxy(web.port) as proxy:
        proxied = client.with_options(base_url=proxy.origin)
        proxy.drop(1)
        third = proxied.messages.batches.create(requests=requests("good")).id
        proxy.drop(1)
        assert proxied.messages.batches.create(requests=requests("good")).id != third
    assert Batch.objects.count() == 4
