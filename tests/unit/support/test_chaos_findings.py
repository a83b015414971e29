"""A thread of the chaos that ends early is a violation, and not a smaller number of checks."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tests.chaos.checks.findings import Findings

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "runs to the end"


def outcome_of(run: Callable[[], None]) -> tuple[int, int, list[str]]:
    findings = Findings()
    thread = threading.Thread(target=findings.run_to_the_end, args=(NAME, run))
    thread.start()
    thread.join()
    (invariant,) = findings.invariants
    return invariant.looked_at, findings.violations, invariant.examples


def test_a_thread_that_reaches_its_end_is_counted() -> None:
    assert outcome_of(lambda: None) == (1, 0, [])


def test_a_thread_that_an_exception_ends_is_a_violation() -> None:
    counts: dict[str, int] = {}
    assert outcome_of(lambda: counts.update(other=counts["status"])) == (1, 1, ["KeyError: 'status'"])
