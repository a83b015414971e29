"""Memory of the web process for 1,000 items of 100 KB with `custom_id`: submitted, run and read."""

from __future__ import annotations

import json
import statistics
import time
import uuid
from typing import TYPE_CHECKING

import psutil

from batches.payloads import open_store
from bench.figures import Figure, at_most, ratio_at_most, require
from bench.measurements import Memory
from bench.workload import clear_tables, item_body, require_sent_once, wait_for_end

if TYPE_CHECKING:
    from bench.deployment import BenchDeployment
    from bench.web import Web

ITEMS, ITEM_BYTES, ROUNDS = 1000, 102_400, 12


def figures(deployment: BenchDeployment) -> list[Figure]:
    body = _body()
    clear_tables()
    deployment.upstream.stats(reset=True)
    with deployment.start_web() as web, deployment.start_worker(), deployment.start_sweeper():
        _submit(web, _body(items=10))
        memory = Memory(web.worker_pid)
        memory.begin()
        began = time.perf_counter()
        batch_id = _submit(web, body)
        seconds = time.perf_counter() - began
        _run_to_the_end(web, batch_id)
        growth = memory.growth_bytes()
        require_sent_once(deployment.upstream)
    clear_tables()
    with deployment.start_web() as web:
        resident = [_resident_after_round(web, body) for _ in range(ROUNDS)]
    clear_tables()
    return [
        Figure(
            name=f"{ITEMS:,} items of 100 KB: until the 200",
            value=seconds,
            unit="s",
            note="with a worker that begins meanwhile",
        ),
        Figure(
            name="  memory of the web process, results read too",
            value=growth / 2**20 if growth is not None else None,
            unit="MiB",
            reference=len(body) / 2**20,
            goals=(ratio_at_most(2),),
        ),
        Figure(
            name=f"  {ROUNDS} of them, one after another: memory added since the second",
            value=(statistics.median(resident[-3:]) - resident[1]) / 2**20,
            unit="MiB",
            goals=(at_most(16),),
            note=f"{resident[0] >> 20} MiB after the first, {resident[-1] >> 20} after the last",
        ),
    ]


def _body(*, items: int = ITEMS) -> bytes:
    parts = (
        b'{"custom_id":"item-%d","params":%b}' % (number, item_body(number, delay_ms=0, size=ITEM_BYTES))
        for number in range(items)
    )
    return b'{"requests":[' + b",".join(parts) + b"]}"


def _submit(web: Web, body: bytes) -> str:
    status, answer = web.call("POST", "/v1/batches", body=body)
    require(status == 200, f"the submission was answered with {status}: {answer[:300]!r}")
    return str(json.loads(answer)["id"])


def _run_to_the_end(web: Web, public_id: str) -> None:
    batch = wait_for_end(str(_row_id(public_id)))
    require(batch.final_counts == {"completed": ITEMS}, f"not all completed: {batch.final_counts}")
    status, answer = web.call("GET", f"/v1/batches/{public_id}/results")
    lines = answer.count(b"\n")
    require((status, lines) == (200, ITEMS), f"the results were answered with {status} and {lines} lines")


def _resident_after_round(web: Web, body: bytes) -> int:
    public_id = _submit(web, body)
    resident: int = psutil.Process(web.worker_pid).memory_info().rss
    open_store().discard(_row_id(public_id))
    clear_tables()
    return resident


def _row_id(public_id: str) -> uuid.UUID:
    return uuid.UUID(public_id.removeprefix("batch_"))
