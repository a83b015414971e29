"""Items run on real Celery workers, and survive their failures."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import redis
from django.conf import settings

from batches.completion.cancel import cancel_batch
from batches.execution.call_slots import threads_for
from batches.models import BatchItem, Worker
from batches.results.responses import read_response
from routing.failpoints import ITEM_POINTS
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_for_end, wait_until
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from batches.models import Batch
    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db(transaction=True)

SLOTS = 8
# Reached less often than once an item: by publishers, by those who settle for a group, or the last items.
# Only a batch's last item is sure to be settled the slow way, which is where this point lies.
NTH = {"in_publish": 2, "in_group_settle": 4, "while_settling": 1}


def sends_per_item(upstream: Upstream) -> Counter[str]:
    return Counter(request.headers["idempotency-key"] for request in upstream.requests)


def states(batch: Batch) -> dict[str, int]:
    return BatchItem.objects.counts_by_batch([batch.id])[batch.id]


def finished(batch: Batch, count: int) -> bool:
    return BatchItem.objects.filter(batch_id=batch.id, finished_at__isnull=False).count() >= count


def test_a_batch_goes_through_a_worker_to_results_and_cost(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    deployment.worker()
    batch = submit(catalog, *[chat_body(f"item {number}") for number in range(20)])
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 20}
    assert all(read_response(item) for item in BatchItem.objects.of(batch))
    assert max(sends_per_item(upstream).values()) == 1
    assert UsageEvent.objects.filter(cost_nanos__gt=0).count() == 20


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=() if point == "before_settle" else pytest.mark.endurance)
        for point in ITEM_POINTS
    ],
)
def test_a_worker_killed_at_any_point_loses_only_what_it_ran_and_sends_nothing_twice(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, point: str
) -> None:
    """100 items without retries; the first worker is killed while it runs some of them, a second one continues."""
    victim = deployment.worker(RELAY_FAULT=f"{point}:kill@{NTH.get(point, 20)}")
    deployment.sweeper()
    batch = submit(catalog, *[chat_body()] * 100)
    wait_until(lambda: not victim.is_alive, victim.log)
    deployment.worker()
    wait_for_end(batch)
    lost = BatchItem.objects.filter(batch_id=batch.id, error_code="worker_lost").count()
    assert lost <= threads_for(SLOTS)
    assert batch.final_counts == {"completed": 100 - lost} | ({"discarded": lost} if lost else {})
    assert max(sends_per_item(upstream).values()) == 1
    assert UsageEvent.objects.filter(batch_id=batch.id, late=False).count() == 100


def test_with_attempts_left_the_items_of_a_killed_worker_run_again(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.hang()
    victim = deployment.worker()
    deployment.sweeper()
    batch = submit(catalog, *[chat_body()] * 8, max_attempts=2)
    upstream.wait_for(lambda up: up.in_flight == SLOTS)
    victim.kill()
    upstream.handler = lambda _: answers.usable()
    deployment.worker()
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 8}
    assert set(sends_per_item(upstream).values()) == {2}
    kinds = UsageEvent.objects.filter(batch_id=batch.id).values_list("attempt", "error_kind")
    assert Counter(kinds) == {(1, "worker_lost"): 8, (2, ""): 8}


def test_emptying_redis_in_the_middle_loses_nothing_and_sends_nothing_twice(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.after(0.02)
    deployment.worker()
    deployment.sweeper()
    batch = submit(catalog, *[chat_body()] * 200)
    client = redis.Redis.from_url(settings.REDIS_URL)
    for done in (20, 60, 120):
        wait_until(lambda done=done: finished(batch, done), lambda: f"{states(batch)}")  # type: ignore[misc]
        client.flushdb()
    client.close()
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 200}
    assert set(sends_per_item(upstream).values()) == {1}


def test_cancel_stops_running_items_on_two_workers_within_two_seconds(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.hang()
    deployment.worker()
    deployment.worker()
    batch = submit(catalog, *[chat_body()] * 100)
    upstream.wait_for(lambda up: up.in_flight == 2 * SLOTS)
    cancel_batch(batch)
    wait_for_end(batch)
    assert batch.final_counts == {"cancelled": 100}
    running = BatchItem.objects.filter(batch_id=batch.id, error="cancelled while running")
    assert running.count() == 2 * SLOTS
    assert UsageEvent.objects.filter(batch_id=batch.id, error_kind="cancelled").count() == 2 * SLOTS
    upstream.wait_for(lambda up: up.in_flight == 0)
    assert batch.ended_at
    assert batch.cancel_initiated_at
    assert batch.ended_at - batch.cancel_initiated_at < timedelta(seconds=2)


def test_two_batches_share_the_slots_and_never_take_a_ninth(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    calls = Calls()
    upstream.handler = calls.answered
    deployment.worker()
    first = submit(catalog, *[chat_body()] * 60)
    second = submit(catalog, *[chat_body()] * 60)
    wait_for_end(first, second)
    assert calls.max_at_once == SLOTS


class Calls:
    """Counts concurrent calls until a response begins: after its end, the slot may be faster than the counter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = self.max_at_once = 0

    def answered(self, _: object) -> Answer:
        self._add(1)
        time.sleep(0.02)
        self._add(-1)
        return answers.usable()

    def _add(self, number: int) -> None:
        with self._lock:
            self._now += number
            self.max_at_once = max(self.max_at_once, self._now)


def test_a_message_delivered_many_times_runs_the_item_once(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    from batches.publishing.broker import send_messages

    batch = submit(catalog, chat_body())
    item = BatchItem.objects.get(batch_id=batch.id)
    send_messages([item.id] * 50)
    deployment.worker()
    wait_for_end(batch)
    assert len(upstream.requests) == 1
    assert UsageEvent.objects.count() == 1


def test_messages_that_mean_nothing_do_no_harm(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    from celery import current_app

    for kwargs in ({"item_id": "no id"}, {}, {"item_id": str(catalog.policy.id), "colour": "blue"}):
        current_app.send_task("batches.run_item", kwargs=kwargs, queue="items")
    current_app.send_task("batches.unknown", kwargs={"x": 1}, queue="items")
    deployment.worker()
    batch = submit(catalog, chat_body())
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 1}


def test_a_stopped_worker_lets_running_items_finish_and_takes_nothing_new(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    gate = threading.Event()
    upstream.handler = lambda _: answers.held(gate)
    worker = deployment.worker(RELAY_SHUTDOWN_GRACE_S="20")
    batch = submit(catalog, *[chat_body()] * 40)
    upstream.wait_for(lambda up: up.in_flight == SLOTS)
    worker.signal(signal.SIGTERM)
    wait_until(lambda: "shutdown" in worker.log().lower(), worker.log)
    gate.set()
    assert worker.stop() == 0
    assert states(batch) == {"completed": SLOTS, "available": 40 - SLOTS}
    assert not Worker.objects.exists()


def test_after_the_grace_a_stopped_worker_settles_its_items_as_a_lost_one_does(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.hang()
    worker = deployment.worker(RELAY_SHUTDOWN_GRACE_S="1")
    once = submit(catalog, chat_body())
    again = submit(catalog, chat_body(), max_attempts=2)
    upstream.wait_for(lambda up: up.in_flight == 2)
    assert worker.stop() == 0
    wait_for_end(once)
    assert once.final_counts == {"discarded": 1}
    assert BatchItem.objects.get(batch_id=once.id).error_code == "worker_lost"
    waiting = BatchItem.objects.get(batch_id=again.id)
    assert (waiting.state, waiting.attempt, waiting.waiting_reason) == ("available", 1, "worker_stopped")


def test_a_worker_that_was_taken_for_lost_and_wakes_up_changes_nothing_but_keeps_its_usage(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    gate = threading.Event()
    upstream.handler = lambda _: answers.held(gate)
    sleeper = deployment.worker()
    deployment.sweeper()
    batch = submit(catalog, chat_body())
    upstream.wait_for(lambda up: up.in_flight == 1)
    sleeper.signal(signal.SIGSTOP)
    wait_for_end(batch)
    gate.set()
    sleeper.signal(signal.SIGCONT)
    late = UsageEvent.objects.filter(batch_id=batch.id, late=True)
    wait_until(late.exists, sleeper.log)
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.error_code) == ("discarded", "worker_lost")
    assert late.get().cost_nanos


def test_the_deadline_ends_an_item_whose_upstream_never_answers(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.hang()
    deployment.worker(RELAY_BATCH_ITEM_TIMEOUT_S="1")
    batch = submit(catalog, chat_body())
    wait_for_end(batch)
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.error_code) == ("discarded", "timeout")
    assert "timed out after 1 s" in item.error


def test_overdue_items_expire_and_the_batch_ends(deployment: Deployment, catalog: SimpleNamespace) -> None:
    batch = submit(catalog, chat_body(), lifetime_seconds=1)
    deployment.sweeper()
    wait_for_end(batch)
    assert batch.final_counts == {"expired": 1}


def test_with_long_calls_a_worker_claims_nothing_ahead_and_holds_a_message_for_each_thread(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    """So that no item is bound to a worker without a slot for it, and no slot waits for a message."""
    deployment.worker(RELAY_SHUTDOWN_GRACE_S="1")
    wait_for_end(submit(catalog, *[chat_body()] * 30))
    gate = threading.Event()
    upstream.handler = lambda _: answers.held(gate)
    batch = submit(catalog, *[chat_body()] * 40)
    upstream.wait_for(lambda up: up.in_flight == SLOTS)
    client = redis.Redis.from_url(settings.REDIS_URL)
    wait_until(
        lambda: client.llen("items") == 2 * SLOTS - threads_for(SLOTS), lambda: f"{client.llen('items')}"
    )
    wait_until(lambda: states(batch).get("running") == SLOTS, lambda: f"{states(batch)}")
    assert upstream.max_in_flight == SLOTS
    gate.set()
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 40}
    assert max(sends_per_item(upstream).values()) == 1
    client.close()
