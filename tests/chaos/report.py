"""Format the report of a run, as text or as one line of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.run import ChaosReport

WIDTH = 72


def to_json(result: ChaosReport) -> str:
    return json.dumps(
        {
            "seed": result.seed,
            "seconds": result.seconds,
            "violations": result.findings.violations,
            "done": dict(result.faults),
            "callers": dict(result.client_actions),
            "http": dict(result.statuses),
            "invariants": [asdict(invariant) for invariant in result.findings.invariants],
            "notes": result.findings.notes,
            "home": str(result.home) if result.home else None,
        }
    )


def to_text(result: ChaosReport) -> str:
    return "\n".join(_lines(result))


def _lines(result: ChaosReport) -> Iterator[str]:
    for title, counts in (
        ("faults", result.faults),
        ("client actions", result.client_actions),
        ("HTTP", result.statuses),
    ):
        yield f"\n{title}"
        for name, count in sorted(counts.items()):
            yield f"  {name:{WIDTH}} {count:>8}"
    yield "\nnotes"
    for name, text in result.findings.notes.items():
        yield f"  {name:{WIDTH - 30}} {text}"
    yield f"\n{'invariant':{WIDTH + 2}}    checks  result"
    for invariant in result.findings.invariants:
        outcome = f"VIOLATION: {invariant.violations}" if invariant.violations else "OK"
        yield f"  {invariant.name:{WIDTH}} {invariant.looked_at:>9}  {outcome}"
        yield from (f"      {example}" for example in invariant.examples)
    yield ""
    if result.home:
        yield f"{result.findings.violations} violations, seed {result.seed}: logs and data are in {result.home}"
    else:
        yield f"no violation in {result.seconds:g} s, seed {result.seed}"
