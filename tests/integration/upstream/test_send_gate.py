"""Calls and items before a gate that does not let them pass, or not with the key they would have taken."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem, PolicyPause
from relaybatch.ids import uuid7
from routing.gate import breakers
from routing.gate import redis as gate_redis
from routing.gate.liveness import liveness
from routing.models import HostKey
from routing.upstream.send import send
from tests.integration.upstream.test_send_failover import add_binding, closed_port, point_host_at
from tests.support.calls.upstream_calls import call_of
from tests.support.rows.catalog import make_catalog
from tests.support.rows.gate_state import gate_keys
from tests.support.rows.rate_limits import limit_host_key, limit_policy, select_keys
from tests.support.rows.submissions import chat_body, submit
from tests.support.run.races import run_concurrently
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from pytest_django import Settings

    from batches.models import Batch
    from routing.calls.call import Outcome
    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db(transaction=True)

ONE_AN_HOUR = ("requests", 1, 3600, "token-bucket")


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url, host_key_values=("one", "two"))


def credentials(upstream: Upstream) -> list[str]:
    return [request.credential for request in upstream.requests]


def run(batch: Batch, idx: int = 0) -> BatchItem:
    item = BatchItem.objects.get(batch_id=batch.id, idx=idx)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    item.refresh_from_db()
    return item


def state(host_key: HostKey) -> breakers.BreakerState:
    (found,) = breakers.breaker_states([host_key])
    return found


# Calls


def test_a_key_that_was_refused_is_not_called_again(upstream: Upstream, catalog: SimpleNamespace) -> None:
    upstream.script(answers.status(401))
    for _ in range(3):
        assert send(call_of(catalog)).failure is None
    assert credentials(upstream) == ["one", "two", "two", "two"]


def test_keys_take_turns(upstream: Upstream, catalog: SimpleNamespace) -> None:
    select_keys(catalog, "round-robin")
    for _ in range(4):
        send(call_of(catalog))
    assert credentials(upstream) == ["one", "two", "one", "two"]


def test_the_upstreams_retry_after_closes_a_key_for_as_long(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    upstream.script(answers.status(429, headers={"Retry-After": "30"}), answers.status(429))
    send(call_of(catalog))
    one, two = (state(host_key) for host_key in catalog.host_keys)
    assert (one.state, one.last_failure, one.failures) == ("open", "429", 1)
    assert one.until
    assert timedelta(seconds=25) < one.until - timezone.now() <= timedelta(seconds=31)
    assert two.state == "closed"


@pytest.mark.parametrize("end", ["time-out", "cancel"])
def test_what_ends_a_call_of_ours_blames_no_key(
    upstream: Upstream, catalog: SimpleNamespace, end: str
) -> None:
    upstream.script(answers.hang())
    call = call_of(catalog, seconds=0.3)
    if end == "cancel":
        call.abort_handle.abort("cancelled")
    send(call)
    assert gate_keys() == []


def test_a_host_that_cannot_be_reached_blames_no_key_and_costs_no_limit(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    limit_policy(catalog, ONE_AN_HOUR)
    for host_key in catalog.host_keys:
        limit_host_key(host_key, ONE_AN_HOUR)
    point_host_at(catalog, f"http://127.0.0.1:{closed_port()}")
    assert code_of(catalog) == "upstream_unreachable"
    point_host_at(catalog, upstream.url)
    assert code_of(catalog) == ""
    assert code_of(catalog) == "rate_limited"
    assert [found.state for found in breakers.breaker_states(catalog.host_keys)] == ["closed", "closed"]


def code_of(catalog: SimpleNamespace) -> str:
    failure = send(call_of(catalog)).failure
    return failure.code if failure else ""


def test_the_keys_of_the_next_binding_pass_the_gate_too(catalog: SimpleNamespace, upstream: Upstream) -> None:
    """And the call counts once for the policy."""
    limit_policy(catalog, ("requests", 2, 3600, "token-bucket"))
    limit_host_key(add_binding(catalog, upstream.url), ONE_AN_HOUR)
    point_host_at(catalog, f"http://127.0.0.1:{closed_port()}")
    assert code_of(catalog) == ""
    assert code_of(catalog) == "upstream_unreachable"
    assert len(upstream.requests) == 1


def test_tokens_of_the_answer_are_charged(catalog: SimpleNamespace) -> None:
    limit_policy(catalog, ("tokens", 300, 3600, "fixed-window"))
    assert [code_of(catalog) for _ in range(3)] == ["", "", "rate_limited"]


def test_a_place_is_free_again_when_the_call_is_over_however_it_ended(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    limit_policy(catalog, ("concurrency", 1, None, ""))
    upstream.script(
        answers.usable(), answers.status(400), answers.status(429), answers.hang(), answers.usable()
    )
    for seconds in (20, 20, 0.3, 20):
        outcome = send(call_of(catalog, seconds=seconds))
        assert outcome.postponement is None
    assert len(upstream.requests) == 5


def test_a_call_waits_a_moment_for_a_place(
    catalog: SimpleNamespace, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "routing.upstream.send.CONCURRENCY_WAIT_SECONDS", 10.0
    )  # however slow this machine is
    limit_policy(catalog, ("concurrency", 1, None, ""))
    outcomes = run_concurrently([lambda: send(call_of(catalog))] * 2)
    assert [outcome.failure for outcome in outcomes] == [None, None]


def test_states_of_keys_and_a_reset(catalog: SimpleNamespace, upstream: Upstream) -> None:
    upstream.script(answers.status(401), answers.status(503))
    send(call_of(catalog))
    one, two = breakers.breaker_states(catalog.host_keys)
    assert (one.state, one.last_failure, one.failures) == ("open", "401", 1)
    assert (two.state, two.last_failure, two.failures) == ("open", "503", 1)
    assert one.until
    assert one.last_failure_at
    assert one.until - one.last_failure_at == timedelta(minutes=1)
    breakers.reset_breaker(catalog.host_keys[0])
    assert state(catalog.host_keys[0]) == breakers.BreakerState(catalog.host_keys[0], "closed")
    HostKey.objects.filter(id=catalog.host_keys[1].id).update(
        secret_encrypted=None, env_name="UPSTREAM_TEST_UNSET"
    )
    assert state(HostKey.objects.get(id=catalog.host_keys[1].id)).state == "unknown"


# Items


def test_without_waiting_a_spent_limit_fails_the_item(catalog: SimpleNamespace, upstream: Upstream) -> None:
    limit_policy(catalog, ONE_AN_HOUR)
    batch = submit(catalog, chat_body(), chat_body(), max_attempts=3)
    assert run(batch, 0).state == "completed"
    item = run(batch, 1)
    assert (item.state, item.error_code, item.attempt) == ("discarded", "rate_limited", 1)
    assert "rate limit" in item.error
    event = UsageEvent.objects.get(batch_id=batch.id, item_idx=1)
    assert (event.status, event.error_kind, event.cost_nanos) == (0, "rate_limited", 0)
    assert len(upstream.requests) == 1


def test_with_waiting_the_item_goes_back_and_the_policy_is_passed_over(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    limit_policy(catalog, ONE_AN_HOUR)
    batch = submit(catalog, chat_body(), chat_body(), on_rate_limit="wait")
    run(batch, 0)
    item = run(batch, 1)
    assert (item.state, item.attempt, item.waiting_reason) == ("available", 0, "rate_limit")
    assert item.not_before
    assert timedelta(minutes=59) < item.not_before - timezone.now() <= timedelta(minutes=60)
    assert abs(PolicyPause.objects.get().until - item.not_before) < timedelta(seconds=1)
    assert UsageEvent.objects.count() == 1


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_failure_that_passes_makes_every_item_wait(
    catalog: SimpleNamespace, upstream: Upstream, status: int
) -> None:
    upstream.handler = lambda _: answers.status(status)
    batch = submit(catalog, chat_body(), chat_body())
    first = run(batch, 0)
    assert (first.state, first.error_code, first.upstream_status) == ("discarded", "upstream_status", status)
    item = run(batch, 1)
    assert (item.state, item.attempt, item.waiting_reason) == ("available", 0, "breaker_open")
    assert item.not_before
    assert timedelta(0) < item.not_before - timezone.now() <= timedelta(seconds=2)
    assert len(upstream.requests) == 2


def test_keys_that_are_refused_for_good_fail_the_item_unless_it_waits(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.status(401)
    failing = submit(catalog, chat_body(), chat_body(), max_attempts=3)
    waiting = submit(catalog, chat_body(), on_rate_limit="wait")
    assert run(failing, 0).upstream_status == 401
    item = run(failing, 1)
    assert (item.state, item.error_code) == ("discarded", "no_healthy_keys")
    assert "no healthy keys" in item.error
    item = run(waiting)
    assert (item.state, item.attempt, item.waiting_reason) == ("available", 0, "breaker_open")
    assert item.not_before
    assert timedelta(seconds=50) < item.not_before - timezone.now() <= timedelta(seconds=60)
    assert PolicyPause.objects.get().until - timezone.now() < timedelta(seconds=3), "other hosts may work"


class Redis:
    """The address of the gate's Redis. Nothing listens there while it is stopped."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._url = settings.REDIS_URL

    def stop(self) -> None:
        self._point_redis_at(f"redis://127.0.0.1:{closed_port()}/0")

    def start(self) -> None:
        self._point_redis_at(self._url)

    def _point_redis_at(self, url: str) -> None:
        self._settings.REDIS_URL = url
        gate_redis.client.cache_clear()
        gate_redis._script.cache_clear()


@pytest.fixture
def redis(settings: Settings) -> Iterator[Redis]:
    found = Redis(settings)
    yield found
    found.start()


def test_while_redis_is_unavailable_items_wait_in_every_mode(
    catalog: SimpleNamespace, upstream: Upstream, redis: Redis
) -> None:
    redis.stop()
    item = run(submit(catalog))
    assert (item.state, item.attempt, item.waiting_reason) == ("available", 0, "redis_away")
    assert not upstream.requests
    assert not UsageEvent.objects.exists()


def test_a_response_counts_while_redis_is_unavailable_and_places_are_released_when_it_is_back(
    catalog: SimpleNamespace, upstream: Upstream, redis: Redis
) -> None:
    limit_policy(catalog, ("concurrency", 1, None, ""))

    def answer(_: object) -> Answer:
        redis.stop()
        return answers.usable()

    upstream.handler = answer
    assert run(submit(catalog)).state == "completed"
    redis.start()
    upstream.handler = lambda _: answers.usable()
    assert code_of(catalog) == "rate_limited"
    liveness.heartbeat(clock=lambda: time.monotonic() + 3600)
    assert code_of(catalog) == ""


@pytest.mark.parametrize("mode", ["wait", "fail"])
def test_an_item_rejected_for_its_key_while_redis_is_unavailable_waits_as_any_other(
    catalog: SimpleNamespace, upstream: Upstream, redis: Redis, mode: str
) -> None:
    """There is another key, and whether it may be used is unknown."""

    def answer(_: object) -> Answer:
        redis.stop()
        return answers.status(401)

    upstream.handler = answer
    item = run(submit(catalog, on_rate_limit=mode))
    assert (item.state, item.attempt, item.excused) == ("available", 1, 1)
    assert item.not_before
    assert timedelta(0) < item.not_before - timezone.now() <= timedelta(seconds=4)


def test_a_redis_that_lost_its_scripts_and_state_goes_on(catalog: SimpleNamespace) -> None:
    limit_policy(catalog, ("concurrency", 1, None, ""))
    assert code_of(catalog) == ""
    gate_redis.client().script_flush()
    assert code_of(catalog) == ""
    gate_redis.client().flushdb()
    assert code_of(catalog) == ""


def test_an_abort_ends_the_wait_for_another_calls_end_and_is_no_spent_limit(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    limit_policy(catalog, ("concurrency", 1, None, ""))
    upstream.script(answers.hang())
    running, waiting = call_of(catalog), call_of(catalog)
    waiting.abort_handle.abort("cancelled")

    def once_the_other_runs() -> Outcome:
        upstream.wait_for(lambda up: up.in_flight == 1)
        try:
            return send(waiting)
        finally:
            running.abort_handle.abort("cancelled")

    _, outcome = run_concurrently([lambda: send(running), once_the_other_runs])
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.postponement) == ("cancelled", None)
