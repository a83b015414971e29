"""Concurrent load: clients that poll while items run, owners that share slots, cancels against the last items."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.db.models.functions import Now

from batches.completion.cancel import cancel_batch
from batches.execution.call_slots import threads_for
from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem
from relaybatch.ids import uuid7
from tests.support.rows.catalog import make_caller
from tests.support.rows.submissions import chat_body, submit
from tests.support.run.races import run_concurrently
from tests.support.servers.deployment import wait_for_end, wait_until
from tests.support.servers.web import web_process
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent
from usage.reconcile import compare

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable
    from pathlib import Path
    from types import SimpleNamespace

    from batches.models import Batch
    from tests.support.servers.deployment import Deployment
    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

SLOTS = 8
WINDOW = 16
WEB_THREADS = 8
CLIENTS = 50
POLLS = 2
SESSION_NAME = {"PGAPPNAME": "load"}
# The sum in docs/operating/operations.md: a publisher beside the web's threads, four more threads of a worker, one
# sweeper.
MAX_SESSIONS = (WEB_THREADS + 1) + (threads_for(SLOTS) + 4) + 1
_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'load'"


def poll_as_client(web: Web, batch: Batch, headers: dict[str, str]) -> list[int]:
    """Send a client's requests and return their statuses."""
    paths = (f"/v1/batches/{batch.id}", f"/v1/batches/{batch.id}/results", "/v1/batches?dialect=relay")
    return [web.call("GET", path, headers=headers).status for path in paths * POLLS]


def count_sessions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(_SESSIONS)
        return int(cursor.fetchone()[0])


def test_fifty_clients_poll_while_eight_slots_run_and_connections_stay_bounded(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.handler = lambda _: answers.after(0.02)
    deployment.start("worker", **SESSION_NAME)
    deployment.sweeper(**SESSION_NAME)
    with web_process(tmp_path, **SESSION_NAME) as web:
        batch = submit(catalog, *[chat_body()] * 300)
        with ThreadPoolExecutor(CLIENTS) as clients:
            polls = [clients.submit(poll_as_client, web, batch, catalog.headers) for _ in range(CLIENTS)]
            most = 0
            while not all(one.done() for one in polls):
                most = max(most, count_sessions())
        statuses = Counter(status for one in polls for status in one.result())
        wait_for_end(batch)
    assert statuses == {200: CLIENTS * 3 * POLLS}
    assert batch.final_counts == {"completed": 300}
    assert most <= MAX_SESSIONS
    assert upstream.max_in_flight == SLOTS
    assert upstream.connections <= 3 * SLOTS, "they are kept, and hardly ever opened anew"


def test_ten_items_of_another_owner_do_not_wait_for_twenty_thousand(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    """Judged by the order in which items ended, so that a slow machine makes no difference."""
    upstream.handler = lambda _: answers.after(0.01)
    large = submit(catalog, *[chat_body()] * 20_000)
    deployment.worker()
    upstream.wait_for(lambda up: len(up.requests) > 100)
    small = submit(make_caller(catalog), *[chat_body()] * 10)
    wait_for_end(small)
    cancel_batch(large)
    began = (
        BatchItem.objects.filter(batch_id=small.id)
        .order_by("started_at")
        .values_list("started_at", flat=True)[0]
    )
    others = BatchItem.objects.filter(batch_id=large.id, state="completed", finished_at__lt=small.ended_at)
    assert others.filter(finished_at__gt=small.created_at).count() <= 10 * WINDOW
    assert others.filter(finished_at__gt=began).count() <= 2 * 10 + WINDOW, (
        "twice an equal share, and what was out already"
    )
    wait_for_end(large)


def test_ten_owners_get_equal_shares(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    """When the first of them has completed half of its items, none is more than 15 % behind."""
    upstream.handler = lambda _: answers.after(0.002)
    batches = [submit(make_caller(catalog), *[chat_body()] * 300) for _ in range(10)]
    deployment.worker()
    ids = [batch.id for batch in batches]
    completed = BatchItem.objects.filter(batch_id__in=ids, state="completed")
    wait_until(lambda: completed.count() > 1700, lambda: f"{completed.count()}", seconds=120)
    for batch in batches:
        cancel_batch(batch)
    ends = completed.order_by("finished_at", "id").values_list("batch_id", "finished_at")
    done: Counter[object] = Counter()
    for batch_id, _ in ends:
        done[batch_id] += 1
        if done[batch_id] == 150:
            break
    assert min(done[batch_id] for batch_id in ids) >= 150 * 0.85, done
    wait_for_end(*batches)


def test_a_hundred_cancels_against_a_hundred_last_items_leave_no_half_state(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    """Each batch has a running item and a waiting one. Every second call fails in a way that would be retried."""
    batches = [submit(catalog, chat_body(), chat_body(), max_attempts=2) for _ in range(100)]
    for start in range(0, 100, 20):
        race(batches[start : start + 20], upstream)
    for batch in batches:
        batch.refresh_from_db()
        assert batch.ended_at
        counts = BatchItem.objects.counts_by_batch([batch.id])[batch.id]
        assert counts == batch.final_counts
        assert sum(counts.values()) == 2
        assert set(counts) <= {"completed", "cancelled"}
        first, second = BatchItem.objects.of(batch)
        assert second.state == "cancelled"
        numbers = UsageEvent.objects.filter(batch_id=batch.id).values_list("item_idx", "attempt", "late")
        assert list(numbers) == [(0, 1, False)]
        assert (first.attempt, second.attempt) == (1, 0)
    assert compare().differences == ()


def race(batches: list[Batch], upstream: Upstream) -> None:
    gate = threading.Event()
    upstream.handler = lambda request: answers.held(
        gate, answers.usable() if request.number % 2 else answers.status(409)
    )
    firsts = BatchItem.objects.filter(batch__in=batches, idx=0)
    firsts.update(published_at=Now())
    with ThreadPoolExecutor(len(batches)) as workers:
        running = [workers.submit(run, item.id) for item in firsts]
        upstream.wait_for(lambda up: up.in_flight == len(batches))
        cancels: list[Callable[[], object]] = [functools.partial(cancel_batch, batch) for batch in batches]
        run_concurrently([gate.set, *cancels])
        for one in running:
            one.result()


def run(item_id: uuid.UUID) -> None:
    try:
        execute_item(item_id, in_flight=InFlightItems(uuid7(), slots=8))
    finally:
        connection.close()
