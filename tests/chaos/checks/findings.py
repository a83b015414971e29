"""Results of the checks: for each invariant how often it was checked, and its violations."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_EXAMPLES = 20
"""How many violations of an invariant are kept as examples."""


@dataclass(slots=True)
class Invariant:
    name: str
    looked_at: int = 0
    violations: int = 0
    examples: list[str] = field(default_factory=list)


class Findings:
    """Thread-safe. An invariant exists once it was checked. `notes`: measured values for the report."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._invariants: dict[str, Invariant] = {}
        self.notes: dict[str, str] = {}

    def record(self, name: str, *violations: str, times: int = 1) -> None:
        """Count `times` checks of the invariant, and record the violations, if any."""
        with self._lock:
            invariant = self._invariants.setdefault(name, Invariant(name))
            invariant.looked_at += times
            invariant.violations += len(violations)
            invariant.examples += violations[: MAX_EXAMPLES - len(invariant.examples)]

    def run_to_the_end(self, name: str, run: Callable[[], None]) -> None:
        """Call `run`, of a thread. An exception would end it unnoticed: it is a violation of the invariant `name`."""
        try:
            run()
        except Exception as error:  # noqa: BLE001 -- recorded, and reported at the end
            self.record(name, f"{type(error).__name__}: {error}"[:300])
        else:
            self.record(name)

    @property
    def invariants(self) -> list[Invariant]:
        with self._lock:
            return list(self._invariants.values())

    @property
    def violations(self) -> int:
        return sum(invariant.violations for invariant in self.invariants)
