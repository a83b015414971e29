"""Items per second of one worker process with eight slots, and the cost of an item."""

from __future__ import annotations

import os
import statistics
import threading
import time
from typing import TYPE_CHECKING

import redis
import requests
from django.conf import settings
from django.db.models import Max, Min

from batches.models import BatchItem
from bench.figures import Figure, require
from bench.measurements import Statements, cpu_seconds, machine_cpu_seconds, redis_commands
from bench.workload import clear_tables, item_body, require_done, submission, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batches.models import Batch
    from bench.deployment import BenchDeployment, Web

ITEMS, WARM_UP_ITEMS = 2_000, 200
# (delay of the upstream in ms, target in items per second, rounds)
CASES = ((50, 120, 1), (0, 200, 3))


def figures(deployment: BenchDeployment) -> list[Figure]:
    found: list[Figure] = []
    for delay_ms, target, rounds in CASES:
        clear_tables()
        with (
            deployment.start_web() as web,
            deployment.start_sweeper() as sweeper,
            deployment.start_worker() as worker,
        ):
            _run(deployment, web, items=WARM_UP_ITEMS, delay_ms=0)
            pids = {
                "worker": worker.pid,
                "PostgreSQL": deployment.servers.postgres.pid,
                "Redis": deployment.servers.redis.pid,
                "upstream": deployment.upstream.process.pid,
                "sweeper": sweeper.pid,
            }
            found += _Case(deployment, web, pids, delay_ms).figures(target=target, rounds=rounds)
    clear_tables()
    return found


class _Case:
    def __init__(self, deployment: BenchDeployment, web: Web, pids: dict[str, int], delay_ms: int) -> None:
        self._deployment = deployment
        self._web = web
        self._pids = pids
        self._delay_ms = delay_ms
        self._statements = Statements()
        self._redis = redis.Redis.from_url(settings.REDIS_URL)

    def figures(self, *, target: int, rounds: int) -> list[Figure]:
        ours, bare, costs = [], [], []
        for _ in range(rounds):
            bare.append(_bare(self._deployment, delay_ms=self._delay_ms))
            rate, cost = self._round()
            ours.append(rate)
            costs.append(cost)
        middle = costs[ours.index(statistics.median_low(ours))]
        self._redis.close()
        return [
            Figure(
                name=f"{ITEMS:,} items, 8 slots, upstream of {self._delay_ms} ms",
                value=statistics.median(ours),
                unit="/s",
                reference=statistics.median(bare),
                target=target,
                more_is_better=True,
                note="" if rounds == 1 else f"ours {_range(ours)}, bare {_range(bare)}",
            ),
            *middle,
        ]

    def _round(self) -> tuple[float, list[Figure]]:
        cpu = {name: cpu_seconds(pid) for name, pid in self._pids.items()}
        machine, ourselves, began = machine_cpu_seconds(), time.process_time(), time.perf_counter()
        self._statements.begin()
        sent = redis_commands(self._redis)
        batch = _run(self._deployment, self._web, items=ITEMS, delay_ms=self._delay_ms)
        used = {name: cpu_seconds(pid) - cpu[name] for name, pid in self._pids.items()}
        seconds = time.perf_counter() - began
        others = machine_cpu_seconds() - machine - sum(used.values()) - (time.process_time() - ourselves)
        counted = self._statements.counts()
        commands = redis_commands(self._redis)
        return _rate(batch), [
            _cpu_figure(used),
            _others_figure(others / seconds),
            *_statement_figures(counted),
            _command_figure({name: calls - sent.get(name, 0) for name, calls in commands.items()}),
        ]


def _run(deployment: BenchDeployment, web: Web, *, items: int, delay_ms: int) -> Batch:
    deployment.upstream.stats(reset=True)
    batch = wait_for_end(web.submit(submission(items, delay_ms=delay_ms)))
    require_done(batch, deployment.upstream)
    return batch


def _rate(batch: Batch) -> float:
    """Items per second from the first claim to the last settlement, by the database's clock."""
    times = BatchItem.objects.filter(batch_id=batch.id).aggregate(
        first=Min("started_at"), last=Max("finished_at")
    )
    seconds: float = (times["last"] - times["first"]).total_seconds()
    return batch.total_items / seconds


def _bare(deployment: BenchDeployment, *, delay_ms: int) -> float:
    """Reference: as many threads as slots that only POST to the same upstream, with `requests`."""
    deployment.upstream.stats(reset=True)
    numbers = iter(range(ITEMS))
    lock = threading.Lock()
    slots = [
        threading.Thread(target=_post_all, args=(deployment.upstream.url, numbers, lock, delay_ms))
        for _ in range(settings.RELAY_BATCH_CONCURRENCY)
    ]
    began = time.perf_counter()
    for slot in slots:
        slot.start()
    for slot in slots:
        slot.join()
    seconds = time.perf_counter() - began
    require(deployment.upstream.stats()["requests"] == ITEMS, "the reference lost requests")
    return ITEMS / seconds


def _post_all(url: str, numbers: Iterator[int], lock: threading.Lock, delay_ms: int) -> None:
    with requests.Session() as session:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            session.post(
                f"{url}/v1/chat/completions",
                data=item_body(number, delay_ms=delay_ms),
                headers={"Idempotency-Key": str(number)},
                timeout=30,
            )


def _cpu_figure(used: dict[str, float]) -> Figure:
    per_item = {name: seconds * 1000 / ITEMS for name, seconds in used.items()}
    parts = ", ".join(f"{name} {milliseconds:.2f}" for name, milliseconds in per_item.items())
    return Figure(name="  processor time an item", value=sum(per_item.values()), unit="ms", note=parts)


def _others_figure(processors: float) -> Figure:
    note = f"of {os.cpu_count()}; with much of it, the rates say little"
    return Figure(name="  processors that others kept busy", value=processors, unit="", note=note)


def _statement_figures(counted: dict[str, tuple[int, float]]) -> list[Figure]:
    if not counted:
        return []
    parts = ", ".join(
        f"{name} {calls / ITEMS:.2f} ({milliseconds / ITEMS:.2f} ms)"
        for name, (calls, milliseconds) in counted.items()
        if calls >= ITEMS / 100
    )
    calls = sum(calls for calls, _ in counted.values())
    return [Figure(name="  statements an item", value=calls / ITEMS, unit="", note=parts)]


def _command_figure(sent: dict[str, int]) -> Figure:
    most = sorted(sent.items(), key=lambda pair: -pair[1])
    parts = ", ".join(f"{name} {calls / ITEMS:.2f}" for name, calls in most if calls >= ITEMS / 100)
    return Figure(name="  Redis commands an item", value=sum(sent.values()) / ITEMS, unit="", note=parts)


def _range(rates: list[float]) -> str:
    return f"{min(rates):.0f} to {max(rates):.0f}/s"
