"""Redis and PostgreSQL become unavailable while a batch runs, and come back."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import redis
from django.db import connection

from batches.models import BatchItem
from relaybatch.quickstart.servers.private_servers import PrivateRedis
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_for_end, wait_until
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from batches.models import Batch
    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

READ_ONLY_SECONDS = 30.0
_CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def finished(batch: Batch) -> int:
    return BatchItem.objects.filter(batch_id=batch.id, finished_at__isnull=False).count()


def assert_whole(batch: Batch, upstream: Upstream, count: int) -> None:
    assert batch.final_counts == {"completed": count}
    sends = Counter(request.headers["idempotency-key"] for request in upstream.requests)
    assert set(sends.values()) == {1}
    assert UsageEvent.objects.filter(batch_id=batch.id, late=False).count() == count


def test_redis_killed_and_started_again_loses_nothing_and_sends_nothing_twice(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.handler = lambda _: answers.after(0.02)
    broker = PrivateRedis(tmp_path)
    broker.start()
    try:
        deployment.worker(REDIS_URL=broker.url)
        deployment.sweeper(REDIS_URL=broker.url)
        batch = submit(catalog, *[chat_body()] * 200)
        for done in (20, 80):
            wait_until(lambda done=done: finished(batch) >= done, lambda: f"{finished(batch)}")  # type: ignore[misc]
            broker.kill()
            before = finished(batch)
            wait_until(lambda: not upstream.in_flight, lambda: "still running")
            assert finished(batch) <= before + 16, "nothing new can be published while it is unavailable"
            broker.start()
        wait_for_end(batch)
    finally:
        broker.stop()
    assert_whole(batch, upstream, 200)


def test_redis_killed_while_messages_go_out_stops_neither_sweeper_nor_batch(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, tmp_path: Path
) -> None:
    broker = PrivateRedis(tmp_path)
    broker.start()
    try:
        sweeper = deployment.sweeper(
            REDIS_URL=broker.url, RELAY_BATCH_WINDOW="100", RELAY_FAULT="in_publish:sleep=1"
        )
        batch = submit(catalog, *[chat_body()] * 60)
        published = BatchItem.objects.filter(batch_id=batch.id, published_at__isnull=False)
        wait_until(lambda: published.count() == 60, sweeper.log)
        broker.kill()
        wait_until(lambda: "broker unavailable" in sweeper.log(), sweeper.log)
        broker.start()
        deployment.worker(REDIS_URL=broker.url)
        wait_for_end(batch)
    finally:
        broker.stop()
    assert sweeper.is_alive
    assert_whole(batch, upstream, 60)


def test_redis_read_only_for_half_a_minute_ends_no_process_and_every_item_is_sent_once(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, tmp_path: Path
) -> None:
    """As after a failover: a replica of an unreachable primary. One worker starts during the outage."""
    upstream.handler = lambda _: answers.after(0.02)
    broker = PrivateRedis(tmp_path)
    broker.start()
    client = redis.Redis.from_url(broker.url)
    try:
        running = deployment.worker(REDIS_URL=broker.url)
        sweeper = deployment.sweeper(REDIS_URL=broker.url)
        batch = submit(catalog, *[chat_body()] * 200)
        wait_until(lambda: finished(batch) >= 20, running.log)
        client.replicaof("127.0.0.1", 1)
        end = time.monotonic() + READ_ONLY_SECONDS
        starting = deployment.worker(REDIS_URL=broker.url)
        waiting = submit(catalog, *[chat_body()] * 20)
        wait_until(lambda: time.monotonic() > end, lambda: "time stands still")
        assert finished(waiting) == 0
        client.replicaof("NO", "ONE")
        wait_until(lambda: finished(batch) + finished(waiting) > 100, running.log, seconds=10)
        running.stop()
        last = submit(catalog, *[chat_body()] * 20)
        wait_for_end(batch, waiting, last)
        for process in (starting, sweeper):
            assert process.is_alive, process.log()
        for process in (running, starting, sweeper):
            assert "CRITICAL" not in process.log()
    finally:
        client.close()
        broker.stop()
    assert batch.final_counts == {"completed": 200}
    assert (waiting.final_counts, last.final_counts) == ({"completed": 20}, {"completed": 20})
    sends = Counter(request.headers["idempotency-key"] for request in upstream.requests)
    assert (len(sends), set(sends.values())) == (240, {1})
    assert UsageEvent.objects.filter(late=False).count() == 240


def test_all_database_connections_cut_again_and_again_lose_nothing_and_send_nothing_twice(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.after(0.02)
    worker = deployment.worker()
    deployment.sweeper()
    batch = submit(catalog, *[chat_body()] * 200)
    for done in (20, 60, 120, 160):
        wait_until(lambda done=done: finished(batch) >= done, worker.log)  # type: ignore[misc]
        with connection.cursor() as cursor:
            cursor.execute(_CUT)
    wait_for_end(batch)
    assert worker.is_alive
    assert_whole(batch, upstream, 200)
