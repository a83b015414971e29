"""The table at the end, for people or as one line of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.run import Told

WIDTH = 72


def as_json(told: Told) -> str:
    return json.dumps(
        {
            "seed": told.seed,
            "seconds": told.seconds,
            "violations": told.findings.violations,
            "done": dict(told.done),
            "callers": dict(told.callers),
            "http": dict(told.statuses),
            "invariants": [asdict(invariant) for invariant in told.findings.invariants],
            "notes": told.findings.notes,
            "home": str(told.home) if told.home else None,
        }
    )


def as_text(told: Told) -> str:
    return "\n".join(_lines(told))


def _lines(told: Told) -> Iterator[str]:
    for title, counts in (("done to it", told.done), ("by callers", told.callers), ("HTTP", told.statuses)):
        yield f"\n{title}"
        for name, count in sorted(counts.items()):
            yield f"  {name:{WIDTH}} {count:>8}"
    yield "\nnoted"
    for name, text in told.findings.notes.items():
        yield f"  {name:{WIDTH - 30}} {text}"
    yield f"\n{'invariant':{WIDTH + 2}} looked at  result"
    for invariant in told.findings.invariants:
        result = f"VIOLATION: {invariant.violations}" if invariant.violations else "OK"
        yield f"  {invariant.name:{WIDTH}} {invariant.looked_at:>9}  {result}"
        yield from (f"      {example}" for example in invariant.examples)
    yield ""
    if told.home:
        yield f"{told.findings.violations} violations, seed {told.seed}: logs and data are in {told.home}"
    else:
        yield f"no violation in {told.seconds:g} s, seed {told.seed}"
