"""Time and memory for a submission of 50,000 items in one body of 30 MiB, until the 202."""

from __future__ import annotations

import os
import statistics
import time
from typing import TYPE_CHECKING, TypeVar

import msgspec
import psycopg
from django.conf import settings
from django.utils import timezone

from batches.models import Batch, BatchItem, Owner
from bench.figures import Figure, ratio_at_most, require, spread
from bench.measurements import Memory
from bench.workload import clear_tables, submission
from relaybatch.ids import uuid7, uuid7_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bench.deployment import BenchDeployment
    from bench.web import Web

T = TypeVar("T")

ITEMS, BODY_BYTES, ROUNDS = 50_000, 30 << 20, 5

_COPY = """COPY batches_batchitem
(id, batch_id, owner_id, idx, custom_id, request_offset, request_length) FROM STDIN"""


class _Body(msgspec.Struct):
    shape: str
    requests: msgspec.Raw


class _Item(msgspec.Struct):
    model: str
    stream: bool | None = None


_body = msgspec.json.Decoder(_Body)
_list = msgspec.json.Decoder(list[msgspec.Raw])
_item = msgspec.json.Decoder(_Item)


def figures(deployment: BenchDeployment) -> list[Figure]:
    body = submission(ITEMS, whole_bytes=BODY_BYTES)
    bare, ours, growths = [], [], []
    with deployment.start_web() as web:
        web.submit(submission(10))
        for _ in range(ROUNDS):
            clear_tables()
            bare.append(_bare(body, folder=deployment.home))
            clear_tables()
            seconds, growth = _submit(web, body)
            ours.append(seconds)
            growths.append(growth)
    clear_tables()
    grown = [growth for growth in growths if growth is not None]
    return [
        Figure(
            name=f"submit {ITEMS:,} items, {BODY_BYTES >> 20} MiB: until the 202",
            value=statistics.median(ours),
            unit="s",
            reference=statistics.median(bare),
            goals=(ratio_at_most(2),),
            note=f"{spread(ours, 's')}; bare {spread(bare, 's')}",
        ),
        Figure(
            name="  memory of the web process beside the body",
            value=max(grown) / 2**20 if grown else None,
            unit="MiB",
            reference=len(body) / 2**20,
            goals=(ratio_at_most(3),),
            note=f"largest growth of {ROUNDS}",
        ),
    ]


def _submit(web: Web, body: bytes) -> tuple[float, int | None]:
    memory = Memory(web.worker_pid)
    memory.begin()
    seconds, batch_id = _time_call(lambda: web.submit(body))
    growth = memory.growth_bytes()
    stored = BatchItem.objects.filter(batch_id=batch_id).count()
    require(stored == ITEMS, f"{stored} of {ITEMS} items are stored")
    return seconds, growth


def _bare(body: bytes, *, folder: Path) -> float:
    """Reference, the minimum of a submission: split and validate, COPY the rows, write the bytes durably."""
    batch = _batch()
    with psycopg.connect(settings.DATABASE_URL) as connection:
        seconds, _ = _time_call(lambda: _work(body, batch=batch, connection=connection, path=folder / "bare"))
    require(BatchItem.objects.filter(batch_id=batch.id).count() == ITEMS, "the reference stored too few rows")
    return seconds


def _work(body: bytes, *, batch: Batch, connection: psycopg.Connection, path: Path) -> None:
    requests = _list.decode(_body.decode(body).requests)
    for request in requests:
        _item.decode(request)
    with path.open("wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    offset = 0
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for idx, (item_id, request) in enumerate(zip(uuid7_run(len(requests)), requests, strict=True)):
            length = len(memoryview(request))
            copy.write_row((item_id, batch.id, batch.owner_id, idx, None, offset, length))
            offset += length
    connection.commit()


def _batch() -> Batch:
    owner, _ = Owner.objects.get_or_create(name="bare")
    return Batch.objects.create(
        id=uuid7(),
        dialect="relay",
        shape="openai",
        owner=owner,
        policy_id=uuid7(),
        principal_kind="serviceaccount",
        principal_id="bare",
        credential_kind="key",
        credential_id="bare",
        total_items=ITEMS,
        max_attempts=1,
        on_rate_limit="fail",
        created_at=timezone.now(),
    )


def _time_call(work: Callable[[], T]) -> tuple[float, T]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
