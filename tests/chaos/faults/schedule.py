"""What all faults of a run share: which targets have one at the moment, and when each fault ends."""

from __future__ import annotations

import heapq
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

# Injects itself and returns True, or returns False if another active fault excludes it.
Fault: TypeAlias = Callable[[], bool]


class FaultSchedule:
    """`counts`: injected faults by their name in the report. `spares_first`: spare the first process of each kind."""

    def __init__(self, *, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self.spares_first = False
        self.rng = random.Random(f"faults {seed}")
        self._active: set[str] = set()
        self._scheduled: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    @property
    def has_scheduled(self) -> bool:
        return bool(self._scheduled)

    def is_active(self, target: str) -> bool:
        return target in self._active

    def start(self, target: str, *, name: str) -> bool:
        """Count a fault of this target. False if the target has one already."""
        if target in self._active:
            return False
        self._active.add(target)
        self.counts[name] += 1
        return True

    def end(self, target: str) -> None:
        self._active.discard(target)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._scheduled, (time.monotonic() + seconds, next(self._order), action))

    def run_due(self, now: float) -> None:
        while self._scheduled and self._scheduled[0][0] <= now:
            heapq.heappop(self._scheduled)[2]()
