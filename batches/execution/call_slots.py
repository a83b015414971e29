"""The slots of a worker: as many upstream calls at once as RELAY_BATCH_CONCURRENCY allows, and never one more.

A worker has more threads than slots, so that claiming, storing and settling overlap with the calls of other items. A
thread may claim its item only when a slot is free for it, or will be in a moment: an item that was claimed stands still
here, while another worker may be free.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

# Longer than a claim takes, and so short that nearly all claimed items have their slot within MAX_WAIT_SECONDS.
CLAIM_AHEAD_SECONDS = 0.03
MAX_WAIT_SECONDS = 0.1
# The weight of the newest call in the mean duration of calls, and in the mean deviation from it.
NEWEST_WEIGHT = 0.2


def threads_for(slots: int) -> int:
    """The number of threads for so many slots: those whose items are claimed, stored and settled besides."""
    return slots + min(slots, 6) + slots // 8


@dataclass(slots=True, eq=False)
class _Waiter:
    wake: threading.Lock = field(default_factory=threading.Lock)
    has_slot: bool = False


class CallSlots:
    """`stop()`: no thread gets a slot any more, and nobody waits for one; calls that run may end."""

    def __init__(self, slots: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Reentrant: `stop` is called by a signal handler, and Celery's solo pool runs items in the main thread.
        self._lock = threading.RLock()
        # One thread at a time decides whether it may claim; the next ones wait for the gate.
        self._gate = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._free = slots
        self._ahead = 0
        self._waiters: deque[_Waiter] = deque()
        self._started: dict[CallSlot, float] = {}
        self._mean_seconds: float | None = None
        self._deviation_seconds = 0.0
        self.is_stopping = False

    def stop(self) -> None:
        with self._lock:
            self.is_stopping = True
            self._changed.notify_all()
            for waiter in self._waiters:
                waiter.wake.release()
            self._waiters.clear()

    @contextlib.contextmanager
    def near(self) -> Iterator[CallSlot | None]:
        """Wait until the caller may claim an item: a slot is free for it, or soon will be. None: stopping."""
        if not self._wait_until_near():
            yield None
            return
        slot = CallSlot(self)
        try:
            yield slot
        finally:
            if not slot.has_left:
                self._leave()

    def acquire(self, slot: CallSlot) -> bool:
        """Take a slot, first come, first served. False: none came within MAX_WAIT_SECONDS, or stopping."""
        with self._lock:
            if self.is_stopping:
                return False
            if self._free:
                self._free -= 1
                self._begin(slot)
                return True
            waiter = _Waiter()
            waiter.wake.acquire()
            self._waiters.append(waiter)
        waiter.wake.acquire(timeout=MAX_WAIT_SECONDS)
        with self._lock:
            if waiter.has_slot:
                self._begin(slot)
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            return waiter.has_slot

    def release(self, slot: CallSlot) -> None:
        with self._lock:
            self._end(slot)
            if self._waiters:
                waiter = self._waiters.popleft()
                waiter.has_slot = True
                waiter.wake.release()
            else:
                self._free += 1
            self._changed.notify()

    def _wait_until_near(self) -> bool:
        with self._gate, self._lock:
            while not self.is_stopping and (seconds := self.seconds_until_near()) != 0.0:
                self._changed.wait(seconds)
            if not self.is_stopping:
                self._ahead += 1
            return not self.is_stopping

    def _leave(self) -> None:
        """End the wait of a thread that has no slot."""
        with self._lock:
            self._ahead -= 1
            self._changed.notify()

    def _begin(self, slot: CallSlot) -> None:
        self._ahead -= 1
        self._started[slot] = self._clock()
        self._changed.notify()

    def _end(self, slot: CallSlot) -> None:
        seconds = self._clock() - self._started.pop(slot)
        mean = seconds if self._mean_seconds is None else self._mean_seconds
        self._mean_seconds = mean + NEWEST_WEIGHT * (seconds - mean)
        self._deviation_seconds += NEWEST_WEIGHT * (abs(seconds - mean) - self._deviation_seconds)

    def seconds_until_near(self) -> float | None:
        """Until a further item may be claimed: 0.0 = now; None = not before a call ends."""
        position = self._ahead - self._free
        if position < 0:
            return 0.0
        ends = self._expected_ends()
        if position >= len(ends):
            return None
        return max(0.0, ends[position] - CLAIM_AHEAD_SECONDS)

    def _expected_ends(self) -> list[float]:
        """In how many seconds calls will probably end, the next ones first.

        A call that takes longer than most may take any time: it is not counted on. Nor is any while durations vary by
        more than a claim could wait.
        """
        if self._mean_seconds is None or self._deviation_seconds > CLAIM_AHEAD_SECONDS:
            return []
        began = self._clock() - self._mean_seconds
        return sorted(
            started - began for started in self._started.values() if started - began > -CLAIM_AHEAD_SECONDS
        )


class CallSlot:
    """One item's way to a slot. As a context manager it holds the slot; False where there is none to be had."""

    def __init__(self, slots: CallSlots) -> None:
        self._slots = slots
        self._near_at = time.monotonic()
        self._is_held = False
        self.has_left = False

    @property
    def claim_age_seconds(self) -> float:
        """How old the claim is at most."""
        return time.monotonic() - self._near_at

    @property
    def is_stopping(self) -> bool:
        return self._slots.is_stopping

    def __enter__(self) -> bool:
        self._is_held = self.has_left = self._slots.acquire(self)
        return self._is_held

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_held:
            self._is_held = False
            self._slots.release(self)
