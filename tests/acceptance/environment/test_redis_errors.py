"""While Redis answers with errors, or with invalid replies, workers retry."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from django.conf import settings

from batches.models import Batch, BatchItem, Worker
from tests.support.proxies.redis_proxy import ERROR_REPLIES, INVALID_REPLIES, READONLY, WRITES, RedisProxy
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_for_end, wait_until
from tests.support.servers.web import web_process
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Upstream

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.endurance]

TRIES = 6


@pytest.mark.parametrize(
    ("replies", "commands"),
    [([READONLY], WRITES), (ERROR_REPLIES.values(), ()), (INVALID_REPLIES.values(), ())],
    ids=["it takes no writes", "errors to everything", "wrong answers"],
)
def test_workers_wait_while_redis_answers_with(
    deployment: Deployment,
    catalog: SimpleNamespace,
    upstream: Upstream,
    replies: list[bytes],
    commands: frozenset[str],
) -> None:
    upstream.handler = lambda _: answers.after(0.02)
    with RedisProxy(settings.REDIS_URL) as proxy:
        running = deployment.worker(REDIS_URL=proxy.url)
        sweeper = deployment.sweeper(REDIS_URL=proxy.url)
        batch = submit(catalog, *[chat_body()] * 60)
        finished = BatchItem.objects.filter(batch_id=batch.id, finished_at__isnull=False)
        wait_until(lambda: finished.count() >= 10, running.log)
        proxy.answer(*replies, commands=frozenset(commands))
        starting = deployment.worker(REDIS_URL=proxy.url)
        proxy.wait_for_answers(TRIES * 3)
        proxy.forward()
        wait_for_end(batch)
        for process in (running, starting, sweeper):
            assert process.is_alive, process.log()
            assert "Frequent restarts" not in process.log()
            assert process.stop() == 0, process.log()
    assert batch.final_counts == {"completed": 60}
    assert set(Counter(request.headers["idempotency-key"] for request in upstream.requests).values()) == {1}


def test_a_worker_that_is_stopped_meanwhile_leaves_no_file_of_its_messages(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, tmp_path: Path
) -> None:
    """It holds as many messages as it has threads, and cannot return them to the queue."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    upstream.handler = lambda _: answers.hang()
    with RedisProxy(settings.REDIS_URL) as proxy:
        worker = deployment.worker(REDIS_URL=proxy.url, TMPDIR=str(scratch), RELAY_SHUTDOWN_GRACE_S="0")
        submit(catalog, *[chat_body()] * 40)
        upstream.wait_for(lambda up: up.in_flight == 8)
        proxy.answer(READONLY, commands=WRITES)
        assert worker.stop() == 0, worker.log()
    assert list(scratch.iterdir()) == []


def test_a_worker_can_be_stopped_while_redis_answers_with_errors(
    deployment: Deployment, catalog: SimpleNamespace
) -> None:
    with RedisProxy(settings.REDIS_URL) as proxy:
        running = deployment.worker(REDIS_URL=proxy.url)
        proxy.answer(READONLY, commands=WRITES)
        starting = deployment.worker(REDIS_URL=proxy.url)
        wait_until(lambda: "broker" in running.log() and "broker" in starting.log(), starting.log)
        assert (running.stop(), starting.stop()) == (0, 0)
    assert not Worker.objects.exists()


def test_web_takes_submissions_and_says_that_it_is_not_ready_while_redis_answers_with_errors(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, tmp_path: Path
) -> None:
    with RedisProxy(settings.REDIS_URL) as proxy:
        proxy.answer(*ERROR_REPLIES.values(), *INVALID_REPLIES.values())
        with web_process(tmp_path, REDIS_URL=proxy.url) as web:
            body = b'{"shape":"openai","requests":[' + chat_body() + b"]}"
            answer = web.call("POST", "/v1/batches", headers=catalog.headers, body=body)
            assert (answer.status, web.call("GET", "/readyz").status) == (202, 503)
            proxy.forward()
            wait_until(lambda: web.call("GET", "/readyz").status == 200, web.log, seconds=10)
            deployment.worker()
            deployment.sweeper()
            wait_for_end(Batch.objects.get(id=answer.json["id"]))
    assert len(upstream.requests) == 1
