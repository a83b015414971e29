"""Time per item with a thousand, a hundred thousand and a million items of the same batch waiting."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connection

from batches.models import BatchItem
from bench.figures import BenchError, Figure, ratio_at_most, spread
from bench.item_cost import ItemCost
from bench.workload import clear_tables, require_sent_once, submission

if TYPE_CHECKING:
    import uuid

    from bench.deployment import BenchDeployment
    from bench.web import Web

LEVELS = (1_000, 100_000, 1_000_000)
WARM_UP_ITEMS, ITEMS, ROUNDS = 200, 600, 3
MAX_GROWTH = 1.1
MAX_ROUND_SECONDS = 60

# Rows as the submission writes them, with ascending ids. All of them share the request of the batch's first item.
_ADD = """
INSERT INTO batches_batchitem (id, batch_id, owner_id, idx, request_offset, request_length)
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(number), 12, '0'))::uuid, %(batch)s, owner_id, number,
    request_offset, request_length
FROM batches_batchitem, generate_series(%(first)s, %(first)s + %(count)s - 1) number
WHERE batch_id = %(batch)s AND idx = 0
"""
_TOTAL = "UPDATE batches_batch SET total_items = %(total)s WHERE id = %(batch)s"


@dataclass(slots=True)
class Backlog:
    """A batch whose items are added as they run. `items`: all that it has."""

    batch_id: uuid.UUID
    items: int

    def fill(self, waiting: int) -> None:
        missing = waiting - BatchItem.objects.filter(batch_id=self.batch_id, state="available").count()
        if missing > 0:
            self.add(missing)

    def add(self, count: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_ADD, {"batch": self.batch_id, "first": self.items, "count": count})
            self.items += count
            cursor.execute(_TOTAL, {"batch": self.batch_id, "total": self.items})


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    with deployment.start_web() as web, deployment.start_sweeper():
        backlog = _submit(web)
        measured = [_measure(deployment, backlog, waiting=level) for level in LEVELS]
    clear_tables()
    first = statistics.median(measured[0][0])
    found = []
    for level, (milliseconds, costs) in zip(LEVELS, measured, strict=True):
        found += [_figure(level, milliseconds, reference=None if level == LEVELS[0] else first), *costs]
    return found


def _submit(web: Web) -> Backlog:
    item = BatchItem.objects.get(batch_id=web.submit(submission(1, delay_ms=0)))
    return Backlog(item.batch_id, items=1)


def _measure(
    deployment: BenchDeployment, backlog: Backlog, *, waiting: int
) -> tuple[list[float], list[Figure]]:
    """Milliseconds per item of each round, and the processor time of them all."""
    backlog.fill(waiting + WARM_UP_ITEMS)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE batches_batchitem")
    deployment.upstream.stats(reset=True)
    with deployment.start_worker() as worker:
        _seconds_for(deployment, WARM_UP_ITEMS)
        cost = ItemCost(
            {
                "worker": [worker.pid],
                "PostgreSQL": [deployment.servers.postgres.pid],
                "Redis": [deployment.servers.redis.pid],
            }
        )
        measured, first = [], deployment.upstream.stats()["requests"]
        for _ in range(ROUNDS):
            # Without counting the items: to count a million takes processor time of the server.
            backlog.add(ITEMS)
            measured.append(_seconds_for(deployment, ITEMS) * 1000 / ITEMS)
        done = require_sent_once(deployment.upstream) - first
        # The first of them is the processor time.
        return measured, cost.figures(done)[:1]


def _seconds_for(deployment: BenchDeployment, items: int) -> float:
    """Seconds that the running worker took for about as many items, scaled to exactly as many."""
    first, began = deployment.upstream.stats()["requests"], time.monotonic()
    while True:
        time.sleep(0.02)
        done, now = deployment.upstream.stats()["requests"] - first, time.monotonic()
        if done >= items:
            return (now - began) * items / float(done)
        if now - began > MAX_ROUND_SECONDS:
            raise BenchError(f"only {done} of {items} items ran")


def _figure(level: int, milliseconds: list[float], *, reference: float | None) -> Figure:
    return Figure(
        name=f"time per item, {level:,} waiting",
        value=statistics.median(milliseconds),
        unit="ms",
        reference=reference,
        goals=() if reference is None else (ratio_at_most(MAX_GROWTH),),
        note=spread(milliseconds, "ms")
        + ("" if reference is None else f"; reference: {LEVELS[0]:,} waiting"),
    )
