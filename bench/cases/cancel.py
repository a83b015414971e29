"""Cancel of a batch of 50,000 items that wait, until its answer."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import psycopg
from django.conf import settings

from batches.models import Batch
from bench.figures import Figure, at_most, require, spread
from bench.workload import clear_tables, submission

if TYPE_CHECKING:
    from bench.deployment import BenchDeployment
    from bench.web import Web

ITEMS, ROUNDS = 50_000, 3
MAX_SECONDS = 1.5

_COPY_TABLE = """CREATE TABLE bench_item (LIKE batches_batchitem INCLUDING ALL);
INSERT INTO bench_item SELECT * FROM batches_batchitem; ANALYZE bench_item"""
_UPDATE = "UPDATE bench_item SET state = 'cancelled', finished_at = clock_timestamp(), published_at = NULL"


def figures(deployment: BenchDeployment) -> list[Figure]:
    ours, bare = [], []
    with deployment.start_web() as web:
        body = submission(ITEMS)
        for _ in range(ROUNDS):
            clear_tables()
            batch_id = web.submit(body)
            bare.append(_bare_seconds())
            ours.append(_cancel_seconds(web, batch_id))
    clear_tables()
    return [
        Figure(
            name=f"cancel of {ITEMS:,} waiting items",
            value=statistics.median(ours),
            unit="s",
            reference=statistics.median(bare),
            goals=(at_most(MAX_SECONDS),),
            note=f"{spread(ours, 's')}; reference: the same UPDATE of a copy of the table",
        )
    ]


def _cancel_seconds(web: Web, batch_id: str) -> float:
    began = time.perf_counter()
    status, answer = web.call("POST", f"/v1/batches/{batch_id}/cancel")
    seconds = time.perf_counter() - began
    require(200 <= status < 300, f"the cancel was answered with {status}: {answer[:300]!r}")
    batch = Batch.objects.get(id=batch_id)
    require(batch.final_counts == {"cancelled": ITEMS}, f"not all cancelled: {batch.final_counts}")
    return seconds


def _bare_seconds() -> float:
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as bare:
        bare.execute(_COPY_TABLE)
        try:
            began = time.perf_counter()
            updated = bare.execute(_UPDATE).rowcount
            seconds = time.perf_counter() - began
        finally:
            bare.execute("DROP TABLE bench_item")
    require(updated == ITEMS, f"the reference updated {updated} rows")
    return seconds
