"""What a process remembers of closed breakers, and for how long."""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from routing.gate import closed_breakers
from routing.gate import redis as gate_redis
from routing.gate.breaker_signals import NONE, OK
from routing.gate.closed_breakers import CLOSED_BREAKERS, KeyTurns, remembered_turns
from routing.gate.liveness import liveness
from routing.gate.redis import RedisUnavailable, client, run_script
from tests.support.calls.admissions import ERROR, UNAUTHORIZED, Gate, rule, throttled
from tests.support.run.cache_clock import renewals
from tests.support.run.races import run_concurrently

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from routing.gate.breaker_signals import BreakerSignal
    from tests.integration.gate.conftest import RoundTrips
    from tests.support.run.cache_clock import CacheClock

pytestmark = [
    pytest.mark.django_db,  # `run_concurrently` gives each thread a connection
    pytest.mark.usefixtures("clock"),
]
THREE = ("one", "two", "three")


def fail_elsewhere(gate: Gate, signal: BreakerSignal = ERROR) -> None:
    """Another process reports a failure of the first key."""
    released = {"index": 1, "signal": signal.as_json(), "sent": True, "acquired_at": 0}
    call = {"id": "x", "holder": "other", "now": gate.now_ms, "ends": True, "charges": {}, "sent": True}
    run_script("release", plan=gate.binding.plan, call={**call, "released": released, "admitted_at": 0})


def renew() -> None:
    due = renewals(CLOSED_BREAKERS)
    assert due
    for one in due:
        one()


@contextlib.contextmanager
def without_redis(settings: Settings) -> Iterator[None]:
    url = settings.REDIS_URL
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings.REDIS_URL = f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
    gate_redis.client.cache_clear()
    yield
    settings.REDIS_URL = url
    gate_redis.client.cache_clear()
    liveness._reset()


def test_calls_without_rules_run_one_script_in_half_a_second(
    round_trips: RoundTrips, clock: CacheClock
) -> None:
    gate = Gate()

    def calls() -> None:
        for _ in range(20):
            gate.call()

    assert round_trips.scripts_of(calls) == 1
    clock.advance(0.49)
    assert round_trips.scripts_of(calls) == 0
    clock.advance(0.01)
    assert round_trips.scripts_of(calls) == 1


def test_calls_at_the_same_moment_share_the_script(round_trips: RoundTrips) -> None:
    gate = Gate(now_ms=0)
    gate_redis.client().ping()
    assert round_trips.scripts_of(lambda: run_concurrently([gate.call] * 8)) == 1


@pytest.mark.parametrize(
    "gate",
    [
        Gate(rules=(rule("requests", 1000, 10, "sliding-window"),)),
        Gate(keys=("one", "two"), key_rules={"two": (rule("requests", 1000, 10, "fixed-window"),)}),
    ],
)
def test_with_rules_each_call_runs_the_script(round_trips: RoundTrips, gate: Gate) -> None:
    assert round_trips.scripts_of(lambda: [gate.call() for _ in range(5)]) == 5


def test_a_breaker_that_another_process_opens_is_obeyed_after_half_a_second(clock: CacheClock) -> None:
    gate = Gate(keys=("one", "two"))
    assert gate.call() == "one"
    fail_elsewhere(gate)
    clock.advance(0.49)
    assert gate.call() == "one"
    clock.advance(0.01)
    assert gate.call() == "two"


@pytest.mark.parametrize("signal", [ERROR, UNAUTHORIZED, throttled(10)])
def test_a_breaker_that_this_process_opens_is_obeyed_at_once_by_every_plan(signal: BreakerSignal) -> None:
    gate = Gate(keys=("one", "two"))
    same_keys = replace(gate, host="there")
    assert [gate.call(), same_keys.call()] == ["one", "one"]
    gate.call(signal)
    assert [gate.call(), same_keys.call()] == ["two", "two"]


def test_a_failover_is_obeyed_at_once() -> None:
    gate = Gate(keys=("one", "two"))
    gate.call()
    held = gate.acquire()
    assert held.next_key(ERROR) == "two"
    assert gate.call() == "two"
    held.release()


def test_calls_that_were_in_flight_count_as_one_failure_and_close_nothing() -> None:
    gate = Gate()
    gate.call()
    first, second, third = gate.acquire(), gate.acquire(), gate.acquire()
    first.release(ERROR)
    second.release(ERROR)
    third.release(OK)
    assert gate.wait_seconds() == 2
    gate.advance(2)
    gate.call(ERROR)
    assert gate.wait_seconds() == 4


def test_a_half_open_breaker_admits_one_probe_whatever_was_known_before(clock: CacheClock) -> None:
    gate = Gate()
    gate.call(ERROR)
    gate.advance(2)
    probe = gate.acquire()
    assert not gate.passes()
    probe.release(OK)
    clock.advance(0.5)
    held = [gate.acquire() for _ in range(3)]
    assert [one.key for one in held] == ["one"] * 3


def test_what_was_learned_while_a_breaker_opened_is_not_remembered() -> None:
    gate = Gate()
    plan = gate.binding.plan

    def admit() -> KeyTurns:
        """Redis answers, then another thread's failure opens the breaker."""
        closed_breakers.clear_cache()
        return KeyTurns(plan, keys=1, last_index=1)

    assert remembered_turns(plan, keys=1, admit=admit)
    assert remembered_turns(plan, keys=1, admit=lambda: None) is None


@pytest.mark.parametrize("selection", ["round-robin", "least-recently-used"])
def test_a_process_takes_turns_by_itself(round_trips: RoundTrips, selection: str) -> None:
    gate = Gate(keys=THREE, selection=selection)
    calls: list[str] = []
    assert round_trips.scripts_of(lambda: calls.extend(gate.call() for _ in range(7))) == 1
    assert calls == ["one", "two", "three", "one", "two", "three", "one"]


def test_threads_share_the_turns_of_their_process() -> None:
    gate = Gate(keys=THREE, selection="round-robin", now_ms=0)
    assert sorted(Counter(run_concurrently([gate.call] * 40)).values()) == [13, 13, 14]


def test_turns_go_on_after_a_renewal(clock: CacheClock) -> None:
    gate = Gate(keys=THREE, selection="round-robin")
    assert [gate.call(), gate.call()] == ["one", "two"]
    clock.advance(0.35)
    renew()
    assert [gate.call(), gate.call()] == ["three", "one"]


def test_a_renewal_takes_the_script_off_the_calls(round_trips: RoundTrips, clock: CacheClock) -> None:
    gate = Gate()
    gate.call()
    for _ in range(5):
        gate.call()
        clock.advance(0.35)
        renew()
        assert round_trips.scripts_of(gate.call) == 0


def test_a_renewal_sees_what_another_process_did(clock: CacheClock) -> None:
    gate = Gate(keys=("one", "two"))
    assert [gate.call(), gate.call()] == ["one", "one"]
    fail_elsewhere(gate)
    clock.advance(0.35)
    renew()
    assert gate.call() == "two"
    client().flushdb()
    clock.advance(0.35)
    renew()
    assert [gate.call(), gate.call()] == ["one", "one"]


def test_when_redis_is_lost_calls_wait_after_half_a_second(settings: Settings, clock: CacheClock) -> None:
    gate = Gate()
    assert [gate.call(), gate.call()] == ["one", "one"]
    with without_redis(settings):
        clock.advance(0.35)
        (renew_one,) = renewals(CLOSED_BREAKERS)
        with pytest.raises(RedisUnavailable):
            renew_one()
        assert gate.passes()
        clock.advance(0.15)
        assert gate.denial().postponement.reason == "redis_away"
    assert gate.passes()


def test_a_redis_that_was_emptied_admits_and_knows_its_scripts_again(clock: CacheClock) -> None:
    gate = Gate(keys=("one", "two"))
    gate.call(ERROR)
    client().flushdb()
    client().script_flush()
    clock.advance(0.5)
    assert [gate.call(), gate.call()] == ["one", "one"]


def test_nothing_is_reported_of_a_call_that_was_not_sent(round_trips: RoundTrips) -> None:
    gate = Gate()
    gate.call()
    held = gate.acquire()
    assert round_trips.scripts_of(lambda: held.release(NONE, sent=False)) == 0
