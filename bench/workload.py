"""Submissions of the benchmarks, and checks that they were processed correctly."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import redis
from django.conf import settings
from django.db import connection

from batches.models import Batch, BatchItem
from bench.figures import BenchError, require
from usage.models import UsageEvent

if TYPE_CHECKING:
    from bench.deployment import UpstreamProcess

MODEL = "echo-1"
MAX_END_SECONDS = 180.0


def item_body(number: int, *, delay_ms: int, size: int = 0) -> bytes:
    """A Chat Completions request, padded to `size` bytes."""
    empty = f'{{"model":"{MODEL}","delay_ms":{delay_ms},"messages":[{{"role":"user","content":"item {number} '
    end = '"}]}'
    return f"{empty}{'x' * max(0, size - len(empty) - len(end))}{end}".encode()


def submission(items: int, *, delay_ms: int = 0, whole_bytes: int = 0) -> bytes:
    """A submission of `items` requests of equal size, in about `whole_bytes`."""
    size = whole_bytes // items - 1 if whole_bytes else 0
    parts = b",".join(item_body(number, delay_ms=delay_ms, size=size) for number in range(items))
    return b'{"shape":"openai","requests":[' + parts + b"]}"


def wait_for_end(batch_id: str) -> Batch:
    deadline = time.monotonic() + MAX_END_SECONDS
    while True:
        batch = Batch.objects.get(id=batch_id)
        if batch.ended_at:
            return batch
        if time.monotonic() > deadline:
            counts = BatchItem.objects.counts_by_batch([batch.id])
            raise BenchError(f"the batch did not end: {counts}")
        time.sleep(0.05)


def wait_until_all_ended() -> None:
    deadline = time.monotonic() + MAX_END_SECONDS
    while Batch.objects.filter(ended_at=None).exists():
        if time.monotonic() > deadline:
            raise BenchError("not all batches ended")
        time.sleep(0.05)


def require_done(batch: Batch, upstream: UpstreamProcess, *, slots: int | None = None) -> None:
    """Every item was completed, sent once and counted once, and at most as many at a time as there are slots.

    `slots`: of all workers together; by default those of one.
    """
    total = batch.total_items
    require(batch.final_counts == {"completed": total}, f"not all completed: {batch.final_counts}")
    sent = require_sent_once(upstream, slots=slots)
    require(sent == total, f"{total} items, but the upstream saw {sent}")
    events = UsageEvent.objects.filter(batch_id=batch.id).count()
    require(events == total, f"{total} items, but {events} usage events")


def require_sent_once(upstream: UpstreamProcess, *, slots: int | None = None) -> int:
    """Return how many items the upstream saw: each once, and at most as many at a time as there are slots."""
    seen = upstream.stats()
    require(seen["requests"] == seen["items"], f"an item was sent twice: {seen}")
    require(seen["most_inside"] <= (slots or settings.RELAY_BATCH_CONCURRENCY), f"too many at once: {seen}")
    return int(seen["items"])


def clear_tables() -> None:
    """Delete rows and messages of an earlier benchmark."""
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE batches_batch, batches_batchitem, batches_itemresponse, batches_file, usage_usageevent CASCADE"
        )
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.flushdb()
    client.close()
