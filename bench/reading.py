"""Status and streamed results of a running batch of 50,000 items, half of which are done."""

from __future__ import annotations

import contextlib
import http.client
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psycopg
from django.conf import settings
from django.db import connection
from obstore.store import LocalStore

from batches.models import BatchItem
from batches.payloads import open_store
from batches.payloads.batch_payloads import BatchPayloads
from batches.payloads.object_store import ObjectPayloads
from bench.figures import Figure, percentile, require
from bench.measurements import Memory
from bench.workload import clear_tables, submission

if TYPE_CHECKING:
    from bench.deployment import BenchDeployment, Web

ITEMS, DONE = 50_000, 25_000
CALLS = 50
ANSWER = (
    b'{"id":"chatcmpl-1","object":"chat.completion","choices":[{"message":{"content":"'
    + b"x" * 400
    + b'"}}]}'
)
STEP_BYTES = 1 << 16

_FINISH = """UPDATE batches_batchitem SET state = 'completed', claim_no = 1, attempt = 1, response_length = %s,
started_at = clock_timestamp(), finished_at = clock_timestamp(), published_at = NULL
WHERE batch_id = %s AND idx < %s"""


@dataclass(frozen=True, slots=True)
class StreamedResults:
    first_byte_seconds: float
    seconds: float
    growth_bytes: int | None
    size_bytes: int


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    with deployment.start_web() as web:
        batch_id = web.submit(submission(ITEMS, delay_ms=50))
        _finish_half(batch_id)
        quiet = _status_seconds(web, batch_id)
        bare_status = _bare_status_seconds(web, batch_id)
        bare_results = _bare_results_seconds(batch_id)
        streamed = _stream_results(web, batch_id)
        with deployment.start_worker():
            busy = _status_seconds(web, batch_id)
    clear_tables()
    return [
        *_status_figures("idle", quiet, bare_status),
        *_status_figures("worker busy", busy, bare_status),
        *_results_figures(streamed, bare_results),
    ]


def _status_figures(word: str, ours: list[float], bare: list[float]) -> list[Figure]:
    return [
        Figure(
            name=f"status of {ITEMS:,} items, running, {word}: p{percent}",
            value=percentile(ours, percent) * 1000,
            unit="ms",
            reference=percentile(bare, percent) * 1000,
            target=25,
            note="reference: GET /healthz and the bare count" if percent == 50 else "",
        )
        for percent in (50, 95)
    ]


def _results_figures(streamed: StreamedResults, bare_seconds: float) -> list[Figure]:
    growth = streamed.growth_bytes
    return [
        Figure(
            name=f"results of {ITEMS:,} items: first byte",
            value=streamed.first_byte_seconds * 1000,
            unit="ms",
            target=150,
        ),
        Figure(
            name="  the whole",
            value=streamed.seconds,
            unit="s",
            reference=bare_seconds,
            note=f"{streamed.size_bytes / 2**20:.1f} MiB; reference: one query, and each answer read",
        ),
        Figure(
            name="  memory of the web process meanwhile",
            value=None if growth is None else growth / 2**20,
            unit="MiB",
            note="growth; flat = small beside the whole",
        ),
    ]


def _finish_half(batch_id: str) -> None:
    """Store responses without a sync for each of them: durability is not measured here."""
    open_store()
    store = BatchPayloads(ObjectPayloads(LocalStore(Path(settings.RELAY_BATCH_PAYLOAD_DIR))))
    for idx in range(DONE):
        store.put_response(uuid.UUID(batch_id), idx=idx, claim_no=1, body=ANSWER)
    with connection.cursor() as cursor:
        cursor.execute(_FINISH, [len(ANSWER), batch_id, DONE])


def _status_seconds(web: Web, batch_id: str) -> list[float]:
    seconds = []
    for _ in range(CALLS + 1):
        began = time.perf_counter()
        status, body = web.call("GET", f"/v1/batches/{batch_id}?items=false")
        seconds.append(time.perf_counter() - began)
        require(status == 200 and msgspec.json.decode(body)["TotalItems"] == ITEMS, f"status: {status}")
    return seconds[1:]


def _bare_status_seconds(web: Web, batch_id: str) -> list[float]:
    """Reference: an HTTP request that does nothing, and the count of items by state."""
    seconds = []
    with psycopg.connect(settings.DATABASE_URL) as bare:
        for _ in range(CALLS + 1):
            began = time.perf_counter()
            web.call("GET", "/healthz")
            bare.execute(
                "SELECT state, count(*) FROM batches_batchitem WHERE batch_id = %s GROUP BY state", [batch_id]
            ).fetchall()
            seconds.append(time.perf_counter() - began)
    return seconds[1:]


def _bare_results_seconds(batch_id: str) -> float:
    began = time.perf_counter()
    store = open_store()
    with psycopg.connect(settings.DATABASE_URL) as bare:
        rows = bare.execute(
            "SELECT idx, claim_no, state FROM batches_batchitem WHERE batch_id = %s ORDER BY idx", [batch_id]
        ).fetchall()
    refs = [(idx, claim_no) for idx, claim_no, state in rows if state == "completed"]
    found = [store.read_response(uuid.UUID(batch_id), idx=idx, claim_no=claim) for idx, claim in refs]
    require(len(found) == DONE == BatchItem.objects.filter(state="completed").count(), "answers are missing")
    return time.perf_counter() - began


def _stream_results(web: Web, batch_id: str) -> StreamedResults:
    memory = Memory(web.worker_pid)
    memory.begin()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=120)) as client:
        began = time.perf_counter()
        client.request("GET", f"/v1/batches/{batch_id}/results", headers=web.headers)
        response = client.getresponse()
        body = response.read(1)
        first_byte = time.perf_counter() - began
        while piece := response.read(STEP_BYTES):
            body += piece
        seconds = time.perf_counter() - began
    results = msgspec.json.decode(body)["results"]
    answered = sum("response" in result for result in results)
    require(len(results) == ITEMS and answered == DONE, f"{len(results)} results, {answered} answers")
    return StreamedResults(first_byte, seconds, memory.growth_bytes(), len(body))
