"""What a call is told that ends with a refused host key, and what the log tells of a breaker that opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from routing.gate.breaker_signals import GOOD, NONE
from routing.upstream.call import KeyRefused
from tests.support.calls.admissions import FORBIDDEN, LOST, REFUSED, TROUBLE, Gate, busy, rule

if TYPE_CHECKING:
    from routing.gate.breaker_signals import Verdict

THREE = ("one", "two", "three")
ONE_A_MINUTE = (rule("requests", 1, 60, "fixed-window"),)


@pytest.mark.parametrize(
    ("before", "verdicts", "seconds", "others"),
    [
        # What became of calls before this one, by key; of this one's keys; then: when, and whether with another.
        ({}, {"one": REFUSED, "two": REFUSED}, 60, False),
        ({}, {"one": FORBIDDEN, "two": FORBIDDEN}, 2, False),
        ({}, {"one": REFUSED, "two": FORBIDDEN}, 2, False),
        ({}, {"one": TROUBLE, "two": REFUSED}, 2, True),
        ({}, {"one": busy(30), "two": FORBIDDEN}, 2, True),
        ({}, {"one": busy(30), "two": REFUSED}, 30, True),
        ({"two": TROUBLE}, {"one": REFUSED}, 2, True),
        ({"two": FORBIDDEN}, {"one": FORBIDDEN}, 2, True),
        ({"two": REFUSED}, {"one": FORBIDDEN}, 2, False),
        ({"two": REFUSED}, {"one": REFUSED}, 60, False),
        ({"two": GOOD}, {"one": REFUSED}, 60, True),
    ],
)
def test_what_a_call_is_told_that_ends_with_a_refused_key(
    before: dict[str, Verdict], verdicts: dict[str, Verdict], seconds: float, others: bool
) -> None:
    gate = Gate(keys=("one", "two"), key_rules={"two": ONE_A_MINUTE} if GOOD in before.values() else {})
    for key, verdict in before.items():
        entered = gate.enter()
        assert entered.another(GOOD) == key
        entered.leave(verdict)
    entered = gate.enter()
    *firsts, last = verdicts.values()
    for verdict in firsts:
        assert entered.another(verdict)
    if len(verdicts) == 1:
        assert entered.another(last) is None
    entered.leave(last)
    assert entered.passage.key_refused == KeyRefused(seconds=seconds, others=others)


def test_a_key_that_was_not_tried_may_be_usable_at_once() -> None:
    gate = Gate(keys=THREE)
    entered = gate.enter()
    assert entered.another(REFUSED) == "two"
    entered.leave(REFUSED)
    assert entered.passage.key_refused == KeyRefused(seconds=0, others=True)


def test_a_refused_key_that_is_half_open_is_another_chance() -> None:
    gate = Gate(keys=("one", "two"), selection="round-robin")
    gate.call(REFUSED)
    gate.after(61)
    entered = gate.enter()
    assert entered.key == "two"
    entered.leave(REFUSED)
    assert entered.passage.key_refused == KeyRefused(seconds=0, others=True)


def test_what_a_refused_call_was_told_stays_when_its_end_is_told_besides() -> None:
    gate = Gate(keys=("one", "two"), rules=(rule("concurrency", 9),))
    first, second = gate.enter(), gate.enter()
    assert first.another(GOOD) == "two"
    first.leave(TROUBLE)
    assert second.another(REFUSED) is None
    second.leave(REFUSED)
    assert second.passage.key_refused == KeyRefused(seconds=2, others=True)


def test_a_key_that_refused_at_another_host_says_nothing_of_this_ones() -> None:
    gate = Gate(keys=("one", "two"))
    entered = gate.enter()
    assert entered.another(REFUSED) == "two"
    there = Gate(keys=("three", "four"), policy=gate.policy, host="there")
    there.call(TROUBLE)
    key = entered.passage.enter(there.choice)
    assert key
    assert key.name == "four"
    entered.leave(REFUSED)
    assert entered.passage.key_refused == KeyRefused(seconds=2, others=True)


@pytest.mark.parametrize("verdict", [GOOD, TROUBLE, LOST, busy(7), NONE])
def test_a_call_that_ends_otherwise_was_not_refused_by_a_key(verdict: Verdict) -> None:
    entered = Gate(keys=("one", "two")).enter()
    assert entered.another(REFUSED) == "two"
    entered.leave(verdict)
    assert entered.passage.key_refused is None


def openings(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str, int]]:
    return [
        (record.levelname, record.host_key, record.status, record.seconds)  # type: ignore[attr-defined]
        for record in caplog.records
        if record.getMessage() == "the breaker of a host key opened"
    ]


def test_a_breaker_that_opens_is_told_once_for_all_calls_that_were_under_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()
    for call in [gate.enter() for _ in range(8)]:
        call.leave(TROUBLE)
    assert openings(caplog) == [("WARNING", "one", "503", 2)]


def test_a_breaker_that_opens_for_another_reason_and_longer_is_told_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()
    first, second, third, fourth = (gate.enter() for _ in range(4))
    first.leave(TROUBLE)
    second.leave(REFUSED)
    third.leave(REFUSED)
    fourth.leave(LOST)
    gate.after(60)
    gate.call(REFUSED)
    assert openings(caplog) == [
        ("WARNING", "one", "503", 2),
        ("WARNING", "one", "401", 60),
        ("WARNING", "one", "401", 300),
    ]


def test_a_key_that_is_left_for_another_is_told_as_well(caplog: pytest.LogCaptureFixture) -> None:
    entered = Gate(keys=THREE).enter()
    entered.another(REFUSED)
    entered.another(busy(30))
    entered.leave(GOOD)
    assert openings(caplog) == [("WARNING", "one", "401", 60), ("WARNING", "two", "429", 30)]
