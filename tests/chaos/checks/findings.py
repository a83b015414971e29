"""What was found: each invariant with how often it was looked at, and every time it did not hold."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

KEPT = 20
"""Violations told one by one, for each invariant."""


@dataclass(slots=True)
class Invariant:
    name: str
    looked_at: int = 0
    violations: int = 0
    examples: list[str] = field(default_factory=list)


class Findings:
    """Written to by several threads. An invariant exists once it was looked at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, Invariant] = {}
        self.notes: dict[str, str] = {}

    def look(self, name: str, *wrong: str, times: int = 1) -> None:
        """It was looked at so many times, and this is what was wrong, if anything."""
        with self._lock:
            invariant = self._found.setdefault(name, Invariant(name))
            invariant.looked_at += times
            invariant.violations += len(wrong)
            invariant.examples += wrong[: KEPT - len(invariant.examples)]

    @property
    def invariants(self) -> list[Invariant]:
        with self._lock:
            return list(self._found.values())

    @property
    def violations(self) -> int:
        return sum(invariant.violations for invariant in self.invariants)
