"""Response times with a million items and a million usage events in the tables."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models.functions import Now
from django.test import Client

from batches.execution.claim import claim_item
from batches.models import Batch, BatchItem
from bench.figures import Figure, at_most, percentile, require
from bench.workload import clear_tables, submission
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from bench.deployment import BenchDeployment

BATCHES, ITEMS_A_BATCH = 20, 50_000
CALLS, CLAIMS = 5, 200

# Ascending ids, as the product's are.
_ITEMS = """
INSERT INTO batches_batchitem (id, batch_id, owner_id, idx, request_offset, request_length)
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(%(first)s + number), 12, '0'))::uuid, %(batch)s, %(owner)s, number,
    0, 2
FROM generate_series(0, %(count)s - 1) number
"""
# Spread over a month, the newest last, so that a day has a thirtieth of them.
_EVENTS = f"""
INSERT INTO usage_usageevent (id, at, source, owner, batch_id, public_batch_id, item_idx, attempt, late, status,
    error_kind, duration_ms, upstream_ms, keys_tried, requested_model, model, provider, host, host_key, adapter,
    policy, project, team, principal_kind, principal_id, credential_kind, credential_id,
    input, output, currency, cost_nanos, cost_breakdown, pricing)
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(number), 12, '0'))::uuid,
    now() - ({BATCHES * ITEMS_A_BATCH + 1} - number) * interval '2.6 seconds', 'batch', 'owner',
    i.batch_id, i.batch_id::text, i.idx, 1, false, 200,
    '', number % 900, number % 800, 1, 'm', 'm' || number % 7, 'p', 'h', 'k', 'openai',
    'policy', 'project', 'team', 'serviceaccount', 'a', 'key', 'c', 60, 50, 'USD', 540000, '{{}}', 'x@1'
FROM (SELECT batch_id, idx, row_number() OVER () AS number FROM batches_batchitem) i
"""


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    with deployment.start_web() as web:
        template = Batch.objects.get(id=web.submit(submission(1)))
    batches = _create_rows(template)
    client = _operator()
    found = [
        _page(client, "admin: list of batches", "/admin/batches/batch/"),
        _page(client, "admin: list of items", "/admin/batches/batchitem/"),
        _page(client, "admin: list of usage events", "/admin/usage/usageevent/"),
        _page(client, "usage summary of a day by model", "/api/usage/summary?since=1d&group_by=model"),
        _counts(batches[0]),
        _claims(batches[1]),
    ]
    clear_tables()
    return found


def _create_rows(template: Batch) -> list[uuid.UUID]:
    ids = [uuid7() for _ in range(BATCHES)]
    for number, batch_id in enumerate(ids):
        template.pk, template.total_items = batch_id, ITEMS_A_BATCH
        template.save(force_insert=True)
        with connection.cursor() as cursor:
            cursor.execute(
                _ITEMS,
                {
                    "batch": batch_id,
                    "owner": template.owner_id,
                    "first": number * ITEMS_A_BATCH,
                    "count": ITEMS_A_BATCH,
                },
            )
    with connection.cursor() as cursor:
        cursor.execute(_EVENTS)
        require(cursor.rowcount >= BATCHES * ITEMS_A_BATCH, f"only {cursor.rowcount} events")
        cursor.execute("VACUUM ANALYZE batches_batchitem, batches_batch, usage_usageevent")
    return ids


def _operator() -> Client:
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(get_user_model().objects.create_superuser("operator"))
    return client


def _page(client: Client, name: str, path: str) -> Figure:
    def read() -> None:
        answer = client.get(path)
        require(answer.status_code == 200, f"{path}: {answer.status_code}")

    return Figure(
        name=name, value=_median_ms(read, CALLS), unit="ms", reference=_bare_ms(), goals=(at_most(1000),)
    )


def _counts(batch_id: uuid.UUID) -> Figure:
    def count() -> None:
        counts = BatchItem.objects.counts_by_batch([batch_id])
        require(sum(counts[batch_id].values()) == ITEMS_A_BATCH, f"counted {counts}")

    return Figure(
        name="counts of a batch for its status",
        value=_median_ms(count, CALLS * 4),
        unit="ms",
        reference=_bare_ms(),
    )


def _claims(batch_id: uuid.UUID) -> Figure:
    worker_id = uuid7()
    published = BatchItem.objects.filter(batch_id=batch_id, idx__lt=CLAIMS)
    published.update(published_at=Now())
    ids = iter(published.order_by("idx").values_list("id", flat=True))

    def claim() -> None:
        require(claim_item(next(ids), worker_id=worker_id) is not None, "an item could not be claimed")

    return Figure(name="claim of an item", value=_median_ms(claim, CLAIMS), unit="ms", reference=_bare_ms())


def _bare_ms() -> float:
    def ask() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    return _median_ms(ask, 50)


def _median_ms(do: Callable[[], None], times: int) -> float:
    seconds: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        do()
        seconds.append(time.perf_counter() - began)
    return percentile(seconds, 50) * 1000
