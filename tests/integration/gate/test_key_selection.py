"""Which host key a call takes, by the policy's `key_selection`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.calls.admissions import ERROR, Gate, throttled
from tests.support.run.races import run_concurrently

pytestmark = pytest.mark.django_db  # `run_concurrently` gives each thread a connection

THREE = ("one", "two", "three")


def test_prioritized_takes_the_first_as_long_as_it_works() -> None:
    gate = Gate(keys=THREE)
    assert [gate.call() for _ in range(3)] == ["one"] * 3
    gate.call(ERROR)
    assert [gate.call() for _ in range(3)] == ["two"] * 3
    gate.advance(2)
    assert [gate.call() for _ in range(3)] == ["one"] * 3


def test_round_robin_takes_turns() -> None:
    gate = Gate(keys=THREE, selection="round-robin")
    assert [gate.call() for _ in range(7)] == ["one", "two", "three", "one", "two", "three", "one"]
    gate.call(ERROR)
    assert [gate.call() for _ in range(4)] == ["three", "one", "three", "one"]
    gate.advance(2)
    assert [gate.call() for _ in range(3)] == ["two", "three", "one"]


@pytest.mark.parametrize("selection", ["round-robin", "least-recently-used"])
def test_of_many_calls_at_once_every_key_gets_as_many_to_within_one(selection: str) -> None:
    """By the script, since one breaker is open."""
    gate = Gate(keys=("out", *THREE), selection=selection, now_ms=0)
    gate.call(throttled(60))
    counts = Counter(run_concurrently([gate.call] * 40))
    assert sorted(counts.values()) == [13, 13, 14]


def test_least_recently_used_takes_the_key_whose_last_use_is_longest_ago() -> None:
    gate = Gate(keys=THREE, selection="least-recently-used")
    assert [gate.call() for _ in range(4)] == ["one", "two", "three", "one"]
    gate.call(ERROR)
    assert [gate.call() for _ in range(4)] == ["three", "one", "three", "one"]
    gate.advance(2)
    assert [gate.call() for _ in range(4)] == ["two", "three", "one", "two"]


@pytest.mark.parametrize("selection", ["round-robin", "least-recently-used"])
def test_a_key_that_joins_takes_its_turn(selection: str) -> None:
    gate = Gate(keys=("one", "two"), selection=selection)
    assert [gate.call(), gate.call()] == ["one", "two"]
    gate.keys = ("one", "two", "new")
    assert Counter(gate.call() for _ in range(6)) == {"one": 2, "two": 2, "new": 2}


def test_the_turns_of_two_hosts_do_not_mix() -> None:
    here = Gate(keys=THREE, selection="round-robin")
    there = Gate(keys=THREE, selection="round-robin", policy=here.policy, host="there")
    assert [here.call(), there.call(), here.call(), there.call()] == ["one", "one", "two", "two"]
