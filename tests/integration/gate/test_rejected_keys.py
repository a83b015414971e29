"""The outcome of a call whose host key was rejected, and the log line of a breaker that opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from routing.calls.call import HostKeyRejection
from routing.gate.breaker_signals import NONE, OK
from tests.support.calls.admissions import (
    CONNECTION_LOST,
    ERROR,
    FORBIDDEN,
    UNAUTHORIZED,
    Gate,
    rule,
    throttled,
)

if TYPE_CHECKING:
    from routing.gate.breaker_signals import BreakerSignal

THREE = ("one", "two", "three")
ONE_A_MINUTE = (rule("requests", 1, 60, "fixed-window"),)


@pytest.mark.parametrize(
    ("before", "signals", "seconds", "others"),
    [
        # What became of calls before this one, by key; of this one's keys; then: when, and whether with another.
        ({}, {"one": UNAUTHORIZED, "two": UNAUTHORIZED}, 60, False),
        ({}, {"one": FORBIDDEN, "two": FORBIDDEN}, 2, False),
        ({}, {"one": UNAUTHORIZED, "two": FORBIDDEN}, 2, False),
        ({}, {"one": ERROR, "two": UNAUTHORIZED}, 2, True),
        ({}, {"one": throttled(30), "two": FORBIDDEN}, 2, True),
        ({}, {"one": throttled(30), "two": UNAUTHORIZED}, 30, True),
        ({"two": ERROR}, {"one": UNAUTHORIZED}, 2, True),
        ({"two": FORBIDDEN}, {"one": FORBIDDEN}, 2, True),
        ({"two": UNAUTHORIZED}, {"one": FORBIDDEN}, 2, False),
        ({"two": UNAUTHORIZED}, {"one": UNAUTHORIZED}, 60, False),
        ({"two": OK}, {"one": UNAUTHORIZED}, 60, True),
    ],
)
def test_the_outcome_of_a_call_that_ends_with_a_rejected_key(
    before: dict[str, BreakerSignal], signals: dict[str, BreakerSignal], seconds: float, others: bool
) -> None:
    gate = Gate(keys=("one", "two"), key_rules={"two": ONE_A_MINUTE} if OK in before.values() else {})
    for key, signal in before.items():
        held = gate.acquire()
        assert held.next_key(OK) == key
        held.release(signal)
    held = gate.acquire()
    *firsts, last = signals.values()
    for signal in firsts:
        assert held.next_key(signal)
    if len(signals) == 1:
        assert held.next_key(last) is None
    held.release(last)
    assert held.admission.host_key_rejected == HostKeyRejection(seconds=seconds, has_other_keys=others)


def test_a_key_that_was_not_tried_may_be_usable_at_once() -> None:
    gate = Gate(keys=THREE)
    held = gate.acquire()
    assert held.next_key(UNAUTHORIZED) == "two"
    held.release(UNAUTHORIZED)
    assert held.admission.host_key_rejected == HostKeyRejection(seconds=0, has_other_keys=True)


def test_a_refused_key_that_is_half_open_is_another_chance() -> None:
    gate = Gate(keys=("one", "two"), selection="round-robin")
    gate.call(UNAUTHORIZED)
    gate.advance(61)
    held = gate.acquire()
    assert held.key == "two"
    held.release(UNAUTHORIZED)
    assert held.admission.host_key_rejected == HostKeyRejection(seconds=0, has_other_keys=True)


def test_a_rejection_stays_when_the_end_of_the_call_is_reported_besides() -> None:
    gate = Gate(keys=("one", "two"), rules=(rule("concurrency", 9),))
    first, second = gate.acquire(), gate.acquire()
    assert first.next_key(OK) == "two"
    first.release(ERROR)
    assert second.next_key(UNAUTHORIZED) is None
    second.release(UNAUTHORIZED)
    assert second.admission.host_key_rejected == HostKeyRejection(seconds=2, has_other_keys=True)


def test_a_key_that_refused_at_another_host_says_nothing_of_this_ones() -> None:
    gate = Gate(keys=("one", "two"))
    held = gate.acquire()
    assert held.next_key(UNAUTHORIZED) == "two"
    there = Gate(keys=("three", "four"), policy=gate.policy, host="there")
    there.call(ERROR)
    key = held.admission.acquire(there.binding)
    assert key
    assert key.name == "four"
    held.release(UNAUTHORIZED)
    assert held.admission.host_key_rejected == HostKeyRejection(seconds=2, has_other_keys=True)


@pytest.mark.parametrize("signal", [OK, ERROR, CONNECTION_LOST, throttled(7), NONE])
def test_a_call_that_ends_otherwise_was_not_refused_by_a_key(signal: BreakerSignal) -> None:
    held = Gate(keys=("one", "two")).acquire()
    assert held.next_key(UNAUTHORIZED) == "two"
    held.release(signal)
    assert held.admission.host_key_rejected is None


def openings(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str, int]]:
    return [
        (record.levelname, record.host_key, record.status, record.seconds)  # type: ignore[attr-defined]
        for record in caplog.records
        if record.getMessage() == "breaker opened"
    ]


def test_a_breaker_that_opens_is_logged_once_for_all_running_calls(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()
    for call in [gate.acquire() for _ in range(8)]:
        call.release(ERROR)
    assert openings(caplog) == [("WARNING", "one", "503", 2)]


def test_a_breaker_that_opens_for_another_reason_and_longer_is_logged_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()
    first, second, third, fourth = (gate.acquire() for _ in range(4))
    first.release(ERROR)
    second.release(UNAUTHORIZED)
    third.release(UNAUTHORIZED)
    fourth.release(CONNECTION_LOST)
    gate.advance(60)
    gate.call(UNAUTHORIZED)
    assert openings(caplog) == [
        ("WARNING", "one", "503", 2),
        ("WARNING", "one", "401", 60),
        ("WARNING", "one", "401", 300),
    ]


def test_the_breaker_of_a_key_that_is_left_for_another_is_logged_as_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    held = Gate(keys=THREE).acquire()
    held.next_key(UNAUTHORIZED)
    held.next_key(throttled(30))
    held.release(OK)
    assert openings(caplog) == [("WARNING", "one", "401", 60), ("WARNING", "two", "429", 30)]
