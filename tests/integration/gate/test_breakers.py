"""When a breaker opens, for how long, and what closes it."""

from __future__ import annotations

import pytest

from routing.gate.breaker_signals import NONE, OK, BreakerSignal
from routing.gate.denials import AdmissionDenied
from routing.gate.redis import client
from routing.resolution.gate_plan import PREFIX
from tests.support.calls.admissions import (
    CONNECTION_LOST,
    ERROR,
    UNAUTHORIZED,
    Gate,
    HeldAdmission,
    rule,
    throttled,
)
from tests.support.rows.gate_state import gate_keys
from tests.support.run.races import run_concurrently

pytestmark = pytest.mark.django_db  # `run_concurrently` gives each thread a connection

THREE = ("one", "two", "three")


def seconds_open(gate: Gate, signal: BreakerSignal) -> float:
    """After a failed call: for how long no other passes. The time is then the end of it."""
    gate.call(signal)
    seconds = gate.wait_seconds()
    gate.advance(seconds - 0.001)
    assert not gate.passes()
    gate.advance(0.001)
    return seconds


@pytest.mark.parametrize(
    ("signal", "ladder"),
    [
        (UNAUTHORIZED, [60, 300, 900, 3600, 3600]),
        (ERROR, [2, 4, 8, 16, 32, 60, 60]),
        (CONNECTION_LOST, [2, 4, 8, 16, 32, 60, 60]),
        (throttled(7), [7, 7, 7]),
    ],
)
def test_each_failed_probe_climbs_the_ladder(signal: BreakerSignal, ladder: list[float]) -> None:
    gate = Gate()
    assert [seconds_open(gate, signal) for _ in ladder] == ladder


def test_a_probe_that_succeeds_closes_the_breaker_and_the_next_failure_is_a_first_one() -> None:
    gate = Gate()
    for _ in range(3):
        seconds_open(gate, ERROR)
    gate.call(OK)
    assert gate_keys() == [key for key in gate_keys() if ":liveness:" in key]
    assert seconds_open(gate, ERROR) == 2


def test_calls_that_were_under_way_together_climb_one_rung() -> None:
    gate = Gate()
    calls = [gate.acquire() for _ in range(8)]
    for call in calls:
        call.release(ERROR)
    assert gate.wait_seconds() == 2


def test_a_late_success_of_a_call_from_before_does_not_close_the_breaker() -> None:
    gate = Gate()
    slow, failing = gate.acquire(), gate.acquire()
    failing.release(ERROR)
    slow.release(OK)
    assert not gate.passes()


def test_a_401_counts_although_the_breaker_was_open_for_less() -> None:
    gate = Gate()
    first, second = gate.acquire(), gate.acquire()
    first.release(ERROR)
    second.release(UNAUTHORIZED)
    assert gate.wait_seconds() == 60


def test_half_open_admits_exactly_one_of_many_calls_at_once() -> None:
    gate = Gate()
    gate.call(ERROR)
    gate.advance(2)

    def enter() -> HeldAdmission | None:
        try:
            return gate.acquire()
        except AdmissionDenied:
            return None

    probes = [held for held in run_concurrently([enter] * 40) if held]
    assert len(probes) == 1
    assert gate.wait_seconds() == 0.5
    gate.advance(20)
    assert gate.wait_seconds() == 5, "the longer a probe takes, the less often calls retry"
    probes[0].release(OK)
    assert gate.passes()


@pytest.mark.parametrize("end", ["its process was lost", "its deadline passed", "it was aborted"])
def test_a_probe_without_a_signal_makes_room_for_another(end: str) -> None:
    gate = Gate()
    gate.call(ERROR)
    gate.advance(2)
    probe = gate.acquire()
    assert not gate.passes()
    if end == "its process was lost":
        clear_liveness()
    elif end == "it was aborted":
        probe.release(NONE)
    else:
        gate.advance(121)
    another = gate.acquire()
    assert not gate.passes()
    probe.release(OK)
    assert not gate.passes(), "its success is not that of the probe that runs now"
    another.release(OK)
    assert gate.passes()


def clear_liveness() -> None:
    client().delete(*[key for key in gate_keys() if key.startswith(f"{PREFIX}liveness:")])


def test_a_call_that_was_aborted_or_not_connected_blames_no_key() -> None:
    gate = Gate()
    gate.acquire().release(NONE)
    gate.acquire().give_back()
    assert gate_keys() == []
    assert gate.passes()


def test_a_failed_key_is_left_for_the_next_healthy_one_that_was_not_tried() -> None:
    gate = Gate(keys=THREE)
    held = gate.acquire()
    assert held.next_key(UNAUTHORIZED) == "two"
    assert held.next_key(ERROR) == "three"
    assert held.next_key(CONNECTION_LOST) is None
    held.release(CONNECTION_LOST)
    assert not gate.passes()
    gate.advance(2)
    other = gate.acquire()
    assert other.key == "two"
    assert other.next_key(ERROR) == "three", "one was refused, and is closed for a minute"


def test_without_a_healthy_key_to_move_to_the_call_ends() -> None:
    gate = Gate(keys=("one", "two"))
    first, second = gate.acquire(), gate.acquire()
    assert first.next_key(ERROR) == "two"
    first.release(ERROR)
    assert second.next_key(ERROR) is None
    second.release()


def test_two_rows_with_the_same_secret_share_a_breaker_and_redis_never_sees_it() -> None:
    one = Gate(keys=("secret",))
    one.call(ERROR)
    other = Gate(
        keys=("secret",), policy=one.policy, host="other", rules=(rule("requests", 9, 9, "fixed-window"),)
    )
    assert not other.passes()
    stored = b" ".join(key.encode() + (client().dump(key) or b"") for key in gate_keys())
    assert f"{one.policy}secret".encode() not in stored


@pytest.mark.parametrize(
    ("signals", "code", "seconds", "must_wait"),
    [
        ([UNAUTHORIZED, UNAUTHORIZED], "no_healthy_keys", 60, False),
        ([UNAUTHORIZED, ERROR], "no_healthy_keys", 2, True),
        ([ERROR, throttled(30)], "no_healthy_keys", 2, True),
        ([throttled(30), throttled(40)], "no_healthy_keys", 30, True),
        ([UNAUTHORIZED, CONNECTION_LOST], "no_healthy_keys", 2, True),
    ],
)
def test_how_a_call_is_denied_when_all_breakers_are_open(
    signals: list[BreakerSignal], code: str, seconds: float, must_wait: bool
) -> None:
    gate = Gate(keys=("one", "two"))
    held = gate.acquire()
    held.next_key(signals[0])
    held.release(signals[1])
    refused = gate.denial()
    postponement = refused.postponement
    assert (refused.failure.code, postponement.reason) == (code, "breaker_open")
    assert (postponement.seconds, postponement.must_wait) == (seconds, must_wait)
    assert "no healthy keys" in refused.failure.message


def test_an_open_breaker_beside_a_spent_limit_makes_every_call_wait() -> None:
    gate = Gate(keys=("one", "two"), key_rules={"two": (rule("requests", 1, 60, "fixed-window"),)})
    gate.call(ERROR)
    assert gate.call() == "two"
    postponement = gate.denial().postponement
    assert (postponement.reason, postponement.seconds, postponement.must_wait) == ("breaker_open", 2, True)


def test_a_rejected_key_beside_one_whose_limit_is_spent_is_a_spent_limit() -> None:
    gate = Gate(keys=("one", "two"), key_rules={"two": (rule("requests", 1, 30, "fixed-window"),)})
    gate.call(UNAUTHORIZED)
    assert gate.call() == "two"
    postponement = gate.denial().postponement
    assert (postponement.reason, postponement.seconds, postponement.must_wait) == ("rate_limit", 30, False)


def test_a_policys_limit_is_not_touched_by_calls_that_no_key_takes() -> None:
    gate = Gate(rules=(rule("requests", 2, 600, "sliding-window"),))
    gate.call(ERROR)
    for _ in range(5):
        assert gate.denial().postponement.reason == "breaker_open"
    gate.advance(2)
    gate.call()
    assert gate.denial().postponement.reason == "rate_limit"
