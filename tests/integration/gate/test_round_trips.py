"""How many round trips to Redis a call costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from routing.gate.breaker_signals import OK
from tests.support.calls.admissions import Gate, rule

if TYPE_CHECKING:
    from routing.resolution.route import Rule
    from tests.integration.gate.conftest import RoundTrips

pytestmark = pytest.mark.usefixtures("clock")
THREE = ("one", "two", "three")


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        (Gate(), 0),
        (Gate(keys=THREE, selection="round-robin"), 0),
        (Gate(rules=(rule("requests", 1000, 10, "sliding-window"),)), 1),
        (Gate(rules=(rule("requests", 1000, 10, "sliding-window"), rule("concurrency", 9))), 2),
        (Gate(rules=(rule("tokens", 1000, 10, "token-bucket"),)), 2),
        (Gate(key_rules={"one": (rule("concurrency", 9),)}), 2),
    ],
)
def test_a_call_costs_none_without_rules_one_with_or_two_where_its_end_has_to_be_reported(
    round_trips: RoundTrips, gate: Gate, expected: int
) -> None:
    assert round_trips.of(gate.call) == expected


@pytest.mark.parametrize(("rules", "expected"), [((), 1), ((rule("requests", 1000, 10, "fixed-window"),), 2)])
def test_a_failover_costs_one_round_trip_more(
    round_trips: RoundTrips, rules: tuple[Rule, ...], expected: int
) -> None:
    gate = Gate(keys=THREE, rules=rules)

    def call() -> None:
        held = gate.acquire()
        assert held.next_key(OK) == "two"
        held.release()

    assert round_trips.of(call) == expected
