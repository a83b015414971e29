"""Latency of an idle system: from the 202 until a batch's first item arrives at the upstream."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import psycopg
import redis
import requests
from django.conf import settings

from bench.figures import Figure, at_most, percentile
from bench.workload import clear_tables, item_body, require_done, submission, wait_for_end

if TYPE_CHECKING:
    from bench.deployment import BenchDeployment
    from bench.web import Web

BATCHES, ITEMS = 50, 10
IDLE_SECONDS = 0.1
QUEUE = "bench"


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    with deployment.start_web() as web, deployment.start_worker():
        waits = [_wait(deployment, web) for _ in range(BATCHES + 1)][1:]
    bare = _Bare(deployment)
    bare_waits = [bare.wait() for _ in range(BATCHES + 1)][1:]
    bare.close()
    clear_tables()
    return [
        Figure(
            name=f"first item at the upstream after the 202: {word}",
            value=percentile(waits, percent) * 1000,
            unit="ms",
            reference=percentile(bare_waits, percent) * 1000,
            goals=goals,
            note=note,
        )
        for word, percent, goals, note in (
            ("p50", 50, (), f"{BATCHES} batches"),
            ("p95", 95, (at_most(100),), "reference: a marked row, a message, a claimed row, a bare POST"),
        )
    ]


def _wait(deployment: BenchDeployment, web: Web) -> float:
    """Seconds from the 202 to the first request. Negative if the request is faster than the 202."""
    time.sleep(IDLE_SECONDS)
    deployment.upstream.stats(reset=True)
    batch_id = web.submit(submission(ITEMS))
    answered_at = time.monotonic()
    require_done(wait_for_end(batch_id), deployment.upstream)
    first_at: float = deployment.upstream.stats()["first_at"]
    return first_at - answered_at


class _Bare:
    """Reference: the same steps without anything else: UPDATE, LPUSH, BRPOP by another thread, UPDATE, POST."""

    def __init__(self, deployment: BenchDeployment) -> None:
        self._upstream = deployment.upstream
        self._url = f"{deployment.upstream.url}/v1/chat/completions"
        self._sending = redis.Redis.from_url(settings.REDIS_URL)
        self._marking = psycopg.connect(settings.DATABASE_URL, autocommit=True)
        self._marking.execute("CREATE TABLE bench_item (id int PRIMARY KEY, state text NOT NULL)")
        self._marking.execute("INSERT INTO bench_item VALUES (1, 'new')")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self) -> float:
        time.sleep(IDLE_SECONDS)
        self._upstream.stats(reset=True)
        began = time.monotonic()
        self._marking.execute("UPDATE bench_item SET state = 'published' WHERE id = 1")
        self._sending.lpush(QUEUE, "1")
        while not (seen := self._upstream.stats())["requests"]:
            time.sleep(0.01)
        return float(seen["first_at"]) - began

    def close(self) -> None:
        self._sending.lpush(QUEUE, "0")
        self._thread.join()
        self._marking.execute("DROP TABLE bench_item")
        self._marking.close()
        self._sending.close()

    def _run(self) -> None:
        client = redis.Redis.from_url(settings.REDIS_URL)
        session = requests.Session()
        with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
            while int(client.brpop([QUEUE])[1]):  # type: ignore[index]
                connection.execute("UPDATE bench_item SET state = 'running' WHERE id = 1")
                session.post(self._url, data=item_body(1, delay_ms=0), timeout=30)
        session.close()
        client.close()
