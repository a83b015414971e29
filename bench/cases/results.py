"""Streamed results of an ended batch of 50,000 items, 50 MB in all."""

from __future__ import annotations

import statistics
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import psycopg
from django.conf import settings

from batches.completion.batch_end import end_complete_batch
from bench.figures import Figure, at_least, at_most, require, spread
from bench.finished_items import answer_of, finish_items
from bench.measurements import Memory, cpu_seconds
from bench.workload import clear_tables, submission

if TYPE_CHECKING:
    from bench.deployment import BenchDeployment
    from bench.web import Web

ITEMS, ANSWER_BYTES = 50_000, 1_000
ROUNDS = 3
STEP_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Streamed:
    first_byte_seconds: float
    seconds: float
    size_bytes: int

    @property
    def megabytes_a_second(self) -> float:
        return self.size_bytes / self.seconds / 1e6


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    answer = answer_of(ANSWER_BYTES)
    with deployment.start_web() as web:
        batch_id = web.submit(submission(ITEMS))
        finish_items(batch_id, count=ITEMS, answer=answer)
        end_complete_batch(uuid.UUID(batch_id))
        _first_page(web, batch_id)
        memory = Memory(web.worker_pid)
        memory.begin()
        pids = {"web": web.pid, "PostgreSQL": deployment.servers.postgres.pid}
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        streamed = [_stream(web, batch_id) for _ in range(ROUNDS)]
        used = {name: (cpu_seconds(pid) - before[name]) / ROUNDS for name, pid in pids.items()}
        growth = memory.growth_bytes()
    bare = _bare_megabytes_a_second(answer)
    clear_tables()
    first_bytes = [one.first_byte_seconds * 1000 for one in streamed]
    rates = [one.megabytes_a_second for one in streamed]
    parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in used.items())
    return [
        Figure(
            name=f"results of {ITEMS:,} items: first byte",
            value=statistics.median(first_bytes),
            unit="ms",
            goals=(at_most(100),),
            note=f"{spread(first_bytes, 'ms')}; {streamed[0].size_bytes / 1e6:.1f} MB in all",
        ),
        Figure(
            name="  the whole",
            value=statistics.median(rates),
            unit="MB/s",
            reference=statistics.median(bare),
            goals=(at_least(40),),
            note=f"{spread(rates, 'MB/s')}; CPU {parts}; "
            "reference: COPY of the same answers out of a bare table",
        ),
        Figure(
            name="  memory of the web process meanwhile",
            value=None if growth is None else growth / 2**20,
            unit="MiB",
            goals=(at_most(30),),
            note=f"largest growth of {ROUNDS}",
        ),
    ]


def _first_page(web: Web, batch_id: str) -> None:
    """Warm up: the process has not read results yet."""
    status, _ = web.call("GET", f"/v1/batches/{batch_id}/results?limit=10")
    require(status == 200, f"the results were answered with {status}")


def _stream(web: Web, batch_id: str) -> Streamed:
    with web.connect() as caller:
        began = time.perf_counter()
        caller.connection.request("GET", f"/v1/batches/{batch_id}/results", headers=caller.headers)
        response = caller.connection.getresponse()
        pieces = [response.read(1)]
        first_byte = time.perf_counter() - began
        while piece := response.read(STEP_BYTES):
            pieces.append(piece)
        seconds = time.perf_counter() - began
    body = b"".join(pieces)
    results = msgspec.json.decode(body)["results"]
    answered = sum("response" in result for result in results)
    require(len(results) == answered == ITEMS, f"{len(results)} results, {answered} answers")
    return Streamed(first_byte, seconds, len(body))


def _bare_megabytes_a_second(answer: bytes) -> list[float]:
    """Reference: the same bytes from a table that has nothing else, in order, to a client of the database."""
    with psycopg.connect(settings.DATABASE_URL) as bare:
        bare.execute("CREATE TEMP TABLE bench_answer (idx int PRIMARY KEY, body bytea NOT NULL)")
        bare.execute(
            "INSERT INTO bench_answer SELECT idx, %b FROM generate_series(1, %s) idx", [answer, ITEMS]
        )
        # The first one is the warm-up.
        rates = [_copy_megabytes_a_second(bare, answer) for _ in range(ROUNDS + 1)][1:]
        bare.rollback()
    return rates


def _copy_megabytes_a_second(bare: psycopg.Connection, answer: bytes) -> float:
    began = time.perf_counter()
    with bare.cursor().copy(
        "COPY (SELECT body FROM bench_answer ORDER BY idx) TO STDOUT (FORMAT binary)"
    ) as copy:
        size = sum(len(piece) for piece in copy)
    seconds = time.perf_counter() - began
    require(size >= ITEMS * len(answer), "the reference lost answers")
    return size / seconds / 1e6
