"""Two real workers share host keys, breakers and rate limits as if they were one."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import redis
from django.db.models import Count, Max, Min, Sum
from django.db.models.functions import Now

from batches.models import BatchItem
from relaybatch.quickstart.servers.private_servers import PrivateRedis
from routing.gate import breakers
from routing.models import Policy, PolicyHostKey
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.rate_limits import limit_policy, select_keys
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_for_end, wait_until
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from batches.models import Batch
    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Exchange, Upstream

pytestmark = pytest.mark.django_db(transaction=True)

SLOTS = 8
WARM_UP_ITEMS = 64
ARRIVAL_SECONDS = 1.0
"""How much later than another a request may arrive after its admission, on a busy machine."""


class ConcurrencyCounter:
    """A response with latency that counts how many are in progress at once, until just before they are sent."""

    def __init__(self, seconds: float) -> None:
        self.running = 0
        self.max_running = 0
        self._seconds = seconds
        self._lock = threading.Lock()

    def __call__(self, exchange: Exchange) -> None:
        with self._lock:
            self.running += 1
            self.max_running = max(self.max_running, self.running)
        try:
            here = exchange.pause(self._seconds)
        finally:
            with self._lock:
                self.running -= 1
        if here:
            answers.usable()(exchange)


def two_workers(deployment: Deployment, **environment: str) -> None:
    deployment.worker(ready=True, **environment)
    deployment.worker(ready=True, **environment)
    deployment.sweeper(**environment)


def warm_up(catalog: SimpleNamespace, upstream: Upstream) -> None:
    """A slot's first call loads certificates: on a busy machine it arrives seconds after its admission."""
    upstream.handler = lambda _: answers.after(0.1)
    wait_for_end(submit(of_another_policy(catalog), *[chat_body()] * WARM_UP_ITEMS))
    upstream.handler = lambda _: answers.usable()


def most_within(upstream: Upstream, seconds: float) -> int:
    """The maximum number of requests in a window of that length, by arrival; without the warm-up."""
    times = sorted(request.at for request in upstream.requests[WARM_UP_ITEMS:])
    return max(sum(1 for at in times if start <= at < start + seconds) for start in times)


def of_another_policy(catalog: SimpleNamespace) -> SimpleNamespace:
    """Another caller, whose policy has the same host keys and no rate limit."""
    policy = Policy.objects.create(name="unlimited")
    PolicyHostKey.objects.bulk_create(
        PolicyHostKey(policy=policy, host_key=host_key) for host_key in catalog.host_keys
    )
    return make_caller(SimpleNamespace(**vars(catalog) | {"policy": policy}))


def items_per_second(batch: Batch) -> float:
    of_all = BatchItem.objects.of(batch).aggregate(
        first=Min("started_at"), last=Max("finished_at"), items=Count("id")
    )
    seconds: float = (of_all["last"] - of_all["first"]).total_seconds()
    return float(of_all["items"]) / seconds


def claims(batch: Batch) -> int:
    return int(BatchItem.objects.of(batch).aggregate(claims=Sum("claim_no"))["claims"])


def states(batch: Batch) -> Counter[tuple[str, str]]:
    return Counter(BatchItem.objects.of(batch).values_list("state", "error_code"))


def has_ended_when_due_now(batch: Batch) -> bool:
    """Make items due that wait for a minute, also those given back later; whether the batch has ended."""
    BatchItem.objects.of(batch).filter(not_before__gt=Now()).update(not_before=Now())
    return not type(batch).objects.filter(id=batch.id, ended_at=None).exists()


def gate_calls(url: str) -> int:
    """Number of scripts run by a Redis that no other test uses: the counter covers all of its databases."""
    with redis.Redis.from_url(url) as server:
        stats: dict[str, Any] = server.info("commandstats")
    return int(stats.get("cmdstat_evalsha", {"calls": 0})["calls"])


def state(catalog: SimpleNamespace) -> str:
    return breakers.breaker_states(catalog.host_keys)[0].state


def test_a_limit_of_20_in_10_seconds_lets_exactly_20_through_however_the_items_are_spread(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    two_workers(deployment)
    warm_up(catalog, upstream)
    limit_policy(catalog, ("requests", 20, 10, "sliding-window"))
    waiting = submit(catalog, *[chat_body()] * 30, on_rate_limit="wait")
    failing = submit(catalog, *[chat_body()] * 10)
    wait_for_end(waiting, failing)
    assert waiting.final_counts == {"completed": 30}
    sent = len(upstream.requests[WARM_UP_ITEMS:])
    assert sent == 30 + states(failing)["completed", ""]
    assert states(failing)["completed", ""] + states(failing)["discarded", "rate_limited"] == 10
    assert most_within(upstream, 10 - ARRIVAL_SECONDS) == 20


def test_a_concurrency_limit_is_never_exceeded_and_nearly_used_up(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    limit_policy(catalog, ("concurrency", 3, None, ""))
    counter = ConcurrencyCounter(0.05)
    upstream.handler = lambda _: counter
    two_workers(deployment)
    batch = submit(catalog, *[chat_body()] * 150, on_rate_limit="wait")
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 150}
    assert counter.max_running == 3
    assert claims(batch) < 250, "few items are published that could only be given back"


def test_the_places_of_a_killed_worker_come_back_by_themselves(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    limit_policy(catalog, ("concurrency", 3, None, ""))
    upstream.handler = lambda _: answers.hang()
    victim = deployment.worker()
    deployment.sweeper()
    batch = submit(catalog, *[chat_body()] * 20, on_rate_limit="wait", max_attempts=2)
    upstream.wait_for(lambda up: up.in_flight == 3)
    victim.kill()
    go_on = threading.Event()
    upstream.handler = lambda _: answers.held(go_on)
    deployment.worker()
    upstream.wait_for(lambda up: len(up.requests) == 6 and up.in_flight == 3)
    go_on.set()
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 20}
    assert upstream.max_in_flight == 3


def test_round_robin_over_three_keys_is_even_to_within_one(
    deployment: Deployment, transactional_db: None, upstream: Upstream
) -> None:
    catalog = make_catalog(upstream.url, host_key_values=("one", "two", "three"))
    select_keys(catalog, "round-robin")
    two_workers(deployment)
    wait_for_end(submit(catalog, *[chat_body()] * 100))
    counts = Counter(request.credential for request in upstream.requests)
    assert sorted(counts.values()) == [33, 33, 34]


def test_a_key_that_answered_401_is_called_by_no_worker_while_its_breaker_is_open(
    deployment: Deployment, transactional_db: None, upstream: Upstream
) -> None:
    catalog = make_catalog(upstream.url, host_key_values=("rejected", "good"))
    upstream.handler = lambda request: (
        answers.status(401) if request.credential == "rejected" else answers.after(0.02)
    )
    two_workers(deployment)
    first = submit(catalog, chat_body())
    wait_for_end(first)
    batch = submit(catalog, *[chat_body()] * 100)
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 100}
    counts = Counter(request.credential for request in upstream.requests)
    assert counts == {"rejected": 1, "good": 101}


def test_half_open_lets_exactly_one_probe_of_all_workers_through(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    held = threading.Event()
    upstream.script(answers.status(500), answers.held(held))
    two_workers(deployment)
    wait_for_end(submit(catalog, chat_body()))
    batch = submit(catalog, *[chat_body()] * 100)
    upstream.wait_for(lambda up: up.in_flight == 1)
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 3, str)
    assert len(upstream.requests) == 2, "while one call tries the key, all others wait"
    held.set()
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 100}


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[PrivateRedis]:
    server = PrivateRedis(tmp_path)
    server.start()
    yield server
    server.stop()


def test_items_wait_at_the_pace_of_the_limit_without_a_busy_loop_and_hold_nobody_up(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, own_redis: PrivateRedis
) -> None:
    limit_policy(catalog, ("requests", 50, 2, "sliding-window"))
    free = of_another_policy(catalog)
    two_workers(deployment, REDIS_URL=own_redis.url)
    limited = submit(catalog, *[chat_body()] * 200, on_rate_limit="wait")
    wait_until(lambda: len(upstream.requests) >= 50, lambda: f"{len(upstream.requests)}")
    before = gate_calls(own_redis.url)
    other = submit(free, *[chat_body()] * 100)
    wait_for_end(other)
    assert not limited.ended_at
    wait_for_end(limited)
    assert limited.final_counts == {"completed": 200}
    assert other.final_counts == {"completed": 100}
    assert items_per_second(limited) <= 50
    assert claims(limited) < 200 * 3
    assert gate_calls(own_redis.url) - before < 150 * 3 + 100 * 2


def test_a_while_of_500s_costs_what_was_under_way_and_the_probes(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    began = time.monotonic()
    upstream.handler = lambda _: answers.status(500) if time.monotonic() - began < 20 else answers.usable()
    deployment.worker()
    deployment.sweeper()
    began = time.monotonic()
    batch = submit(catalog, *[chat_body()] * 100)
    wait_for_end(batch, seconds=120)
    found = states(batch)
    probes = 3
    """2, 6 and 14 s after the first failure; the one after 30 s finds the host healthy again."""
    assert found["discarded", "upstream_status"] <= SLOTS + probes
    assert found["completed", ""] == 100 - found["discarded", "upstream_status"]
    assert state(catalog) == "closed"


def test_a_key_that_is_dead_for_good_fails_a_batch_fast_and_lets_a_waiting_one_wait(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.status(401)
    two_workers(deployment)
    failing = submit(catalog, *[chat_body()] * 50)
    wait_for_end(failing, seconds=15)
    found = states(failing)
    assert found["discarded", "upstream_status"] + found["discarded", "no_healthy_keys"] == 50
    assert found["discarded", "upstream_status"] <= 2 * SLOTS
    sent = len(upstream.requests)
    waiting = submit(catalog, *[chat_body()] * 50, on_rate_limit="wait")
    wait_until(
        lambda: BatchItem.objects.of(waiting).filter(waiting_reason="breaker_open").count() > SLOTS, str
    )
    assert states(waiting).keys() <= {("available", ""), ("running", "")}
    upstream.handler = lambda _: answers.usable()
    breakers.reset_breaker(catalog.host_keys[0])
    wait_until(lambda: has_ended_when_due_now(waiting), lambda: f"{states(waiting)}")
    waiting.refresh_from_db()
    assert waiting.final_counts == {"completed": 50}
    assert len(upstream.requests) == sent + 50
