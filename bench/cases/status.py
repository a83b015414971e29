"""Status of a running batch of 50,000 items, half of which are done: without and with its items."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import psycopg
from django.conf import settings

from bench.figures import Figure, at_most, percentile, require
from bench.finished_items import finish_rows
from bench.workload import clear_tables, submission

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.deployment import BenchDeployment
    from bench.web import KeepAlive

ITEMS, DONE = 50_000, 25_000
CALLS = 50
MAX_MS, MAX_WITH_ITEMS_MS = 15, 120

_COUNT = "SELECT state, count(*) FROM batches_batchitem WHERE batch_id = %s GROUP BY state"
_LIST = "SELECT idx, state FROM batches_batchitem WHERE batch_id = %s ORDER BY idx"


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    with (
        deployment.start_web() as web,
        web.connect() as caller,
        psycopg.connect(settings.DATABASE_URL) as bare,
    ):
        batch_id = web.submit(submission(ITEMS, delay_ms=50))
        finish_rows(batch_id, count=DONE, answer_bytes=100)
        idle = _figures(caller, bare, batch_id, word="idle")
        with deployment.start_worker(), deployment.start_sweeper():
            busy = _figures(caller, bare, batch_id, word="worker busy")
    clear_tables()
    return [*idle, *busy]


def _figures(caller: KeepAlive, bare: psycopg.Connection, batch_id: str, *, word: str) -> list[Figure]:
    without_items = _times_ms(lambda: _read_status(caller, f"/v1/batches/{batch_id}?items=false"))
    with_items = _times_ms(lambda: _read_status(caller, f"/v1/batches/{batch_id}"))
    return [
        *_pair(
            f"status of {ITEMS:,} items, running, {word}",
            ours=without_items,
            bare=_times_ms(lambda: _bare(caller, bare, _COUNT, batch_id)),
            max_ms=MAX_MS,
            note="reference: GET /healthz and a bare count by state",
        ),
        *_pair(
            f"status with its items, {word}",
            ours=with_items,
            bare=_times_ms(lambda: _bare(caller, bare, _LIST, batch_id)),
            max_ms=MAX_WITH_ITEMS_MS,
            note="reference: GET /healthz, and the rows read and encoded",
        ),
    ]


def _pair(name: str, *, ours: list[float], bare: list[float], max_ms: float, note: str) -> list[Figure]:
    return [
        Figure(
            name=f"{name}: p{percent}",
            value=percentile(ours, percent),
            unit="ms",
            reference=percentile(bare, percent),
            goals=(at_most(max_ms),),
            note=note if percent == 50 else "",
        )
        for percent in (50, 95)
    ]


def _times_ms(do: Callable[[], None]) -> list[float]:
    milliseconds = []
    for _ in range(CALLS + 1):
        began = time.perf_counter()
        do()
        milliseconds.append((time.perf_counter() - began) * 1000)
    return milliseconds[1:]


def _read_status(caller: KeepAlive, path: str) -> None:
    status, body = caller.call("GET", path)
    require(status == 200 and b'"TotalItems":%d' % ITEMS in body[:2000], f"status: {status}")


def _bare(caller: KeepAlive, bare: psycopg.Connection, query: str, batch_id: str) -> None:
    caller.call("GET", "/healthz")
    msgspec.json.encode(bare.execute(query, [batch_id]).fetchall())
    bare.rollback()
