"""The slots of a worker: never one call too many, and nothing is claimed that would have to wait for long."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from batches.execution import call_slots
from batches.execution.call_slots import CLAIM_AHEAD_SECONDS, CallSlots, threads_for
from tests.support.servers.deployment import wait_until

TIMEOUT_SECONDS = 10


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any item may be claimed ahead, and waits as long as it must."""
    monkeypatch.setattr(call_slots, "CLAIM_AHEAD_SECONDS", 3600.0)
    monkeypatch.setattr(call_slots, "MAX_WAIT_SECONDS", TIMEOUT_SECONDS)


def run_call(slots: CallSlots, clock: Clock, *, seconds: float) -> None:
    with slots.near() as slot:
        assert slot
        with slot as has_slot:
            assert has_slot
            clock.now += seconds


def test_a_worker_has_more_threads_than_slots_and_few_more_when_it_has_few() -> None:
    assert [threads_for(slots) for slots in (1, 2, 8, 64)] == [2, 4, 15, 78]


def test_never_more_calls_than_slots(long_waits: None) -> None:
    slots, inside, most = CallSlots(3), [0], [0]
    lock = threading.Lock()

    def run(_: int) -> None:
        with slots.near() as slot:
            assert slot
            with slot as has_slot:
                assert has_slot
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                threading.Event().wait(0.001)
                with lock:
                    inside[0] -= 1

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(run, range(300)))
    assert most == [3]
    assert slots.seconds_until_near() == 0.0


def test_while_a_slot_is_free_the_next_item_may_be_claimed() -> None:
    slots = CallSlots(2)
    with slots.near(), slots.near():
        assert slots.seconds_until_near() is None, "two were claimed for the two slots"
    assert slots.seconds_until_near() == 0.0


def test_an_item_may_be_claimed_shortly_before_a_call_probably_ends() -> None:
    clock = Clock()
    slots = CallSlots(1, clock=clock)
    run_call(slots, clock, seconds=2.0)
    with slots.near() as slot:
        assert slot
        with slot:
            assert slots.seconds_until_near() == pytest.approx(2.0 - CLAIM_AHEAD_SECONDS)
            clock.now += 2.0 - CLAIM_AHEAD_SECONDS
            assert slots.seconds_until_near() == 0.0
            with slots.near():
                assert slots.seconds_until_near() is None, "one call ends: one item is claimed for it"
            clock.now += 3 * CLAIM_AHEAD_SECONDS
            assert slots.seconds_until_near() is None, "it takes longer than most, and may take any time"


def test_while_durations_vary_nothing_is_claimed_ahead() -> None:
    """As those of models do: an item would be claimed for each call that reaches the mean and goes on."""
    clock = Clock()
    slots = CallSlots(1, clock=clock)
    for seconds in (1.0, 3.0, 1.0, 3.0):
        run_call(slots, clock, seconds=seconds)
    with slots.near() as slot:
        assert slot
        with slot:
            for _ in range(400):
                assert slots.seconds_until_near() is None
                clock.now += 0.01
    for _ in range(30):
        run_call(slots, clock, seconds=2.0)
    with slots.near() as slot:
        assert slot
        with slot:
            assert slots.seconds_until_near() == pytest.approx(2.0 - CLAIM_AHEAD_SECONDS, abs=0.05)


def test_before_the_first_call_has_ended_nothing_is_claimed_ahead() -> None:
    slots = CallSlots(1)
    with slots.near() as slot:
        assert slot
        with slot:
            assert slots.seconds_until_near() is None


def test_who_gets_no_slot_in_time_gives_up_and_the_slot_goes_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_slots, "CLAIM_AHEAD_SECONDS", 3600.0)
    clock = Clock()
    slots = CallSlots(1, clock=clock)
    run_call(slots, clock, seconds=0.1)
    with slots.near() as first:
        assert first
        with first as has_first, slots.near() as second:
            assert second
            with second as has_second:
                assert (has_first, has_second) == (True, False)
    run_call(slots, clock, seconds=0.1)


def test_slots_go_to_those_that_waited_longest(long_waits: None) -> None:
    clock = Clock()
    slots = CallSlots(4, clock=clock)
    run_call(slots, clock, seconds=0.1)
    order: list[int] = []

    def wait(number: int) -> None:
        with slots.near() as slot:
            assert slot
            with slot as has_slot:
                assert has_slot
                order.append(number)

    with ThreadPoolExecutor(4) as threads, contextlib.ExitStack() as running:
        held = [running.enter_context(slots.near()) for _ in range(4)]
        ends = [running.enter_context(contextlib.ExitStack()) for _ in held]
        for slot, end in zip(held, ends, strict=True):
            assert slot
            end.enter_context(slot)
        for number in range(4):
            threads.submit(wait, number)
            wait_until(lambda: len(slots._waiters) > number, lambda: f"{slots._waiters}")  # noqa: B023
        # The one slot that comes free goes from hand to hand.
        ends[0].close()
        wait_until(lambda: len(order) == 4, lambda: f"{order}")
    assert order == [0, 1, 2, 3]


def test_stopping_ends_every_wait_and_running_calls_may_end(long_waits: None) -> None:
    clock = Clock()
    slots = CallSlots(1, clock=clock)
    run_call(slots, clock, seconds=0.1)
    with ThreadPoolExecutor(1) as threads, slots.near() as held:
        assert held
        with held:

            def wait() -> tuple[bool, bool]:
                with slots.near() as slot:
                    assert slot
                    with slot as has_slot:
                        return has_slot, slot.is_stopping

            waiting = threads.submit(wait)
            wait_until(lambda: bool(slots._waiters), lambda: "nobody waits")
            slots.stop()
            assert waiting.result(TIMEOUT_SECONDS) == (False, True)
    with slots.near() as late:
        assert late is None
