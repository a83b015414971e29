"""How many round trips to Redis a call costs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from redis import Connection

from routing.gate.breaker_signals import OK
from tests.support.calls.admissions import Gate, rule

if TYPE_CHECKING:
    from collections.abc import Callable

THREE = ("one", "two", "three")


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Counts what this thread sends; the server's own statistics are of all that use it."""
    sends: list[int] = []
    send: Any = Connection.send_packed_command

    def counted(self: Connection, *command: Any, **options: Any) -> None:
        sends.append(threading.get_ident())
        send(self, *command, **options)

    def count(do: Callable[[], object]) -> int:
        do()  # the scripts are known afterwards
        sends.clear()
        do()
        return sends.count(threading.get_ident())

    monkeypatch.setattr(Connection, "send_packed_command", counted)
    return count


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        (Gate(), 1),
        (Gate(keys=THREE, selection="round-robin"), 1),
        (Gate(rules=(rule("requests", 1000, 10, "sliding-window"),)), 1),
        (Gate(rules=(rule("requests", 1000, 10, "sliding-window"), rule("concurrency", 9))), 2),
        (Gate(rules=(rule("tokens", 1000, 10, "token-bucket"),)), 2),
        (Gate(key_rules={"one": (rule("concurrency", 9),)}), 2),
    ],
)
def test_a_call_costs_one_round_trip_or_two_where_its_end_has_to_be_reported(
    round_trips: Callable[[Callable[[], object]], int], gate: Gate, expected: int
) -> None:
    assert round_trips(gate.call) == expected


def test_a_failover_costs_one_round_trip(round_trips: Callable[[Callable[[], object]], int]) -> None:
    gate = Gate(keys=THREE)

    def call() -> None:
        held = gate.acquire()
        assert held.next_key(OK) == "two"
        held.release()

    assert round_trips(call) == 2
