"""A measured figure with its reference and goals, and the table of figures."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = ("figure", "measured", "reference", "ratio", "goal", "")


class BenchError(Exception):
    """The work was not done correctly, so that its figure would be meaningless."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound of the measured value, of its ratio to the reference, or of its share of the limit."""

    bound: float
    is_minimum: bool
    of: Literal["value", "ratio", "share"] = "value"

    def is_met(self, judged: float) -> bool:
        return judged >= self.bound if self.is_minimum else judged <= self.bound


def at_least(bound: float) -> Goal:
    return Goal(bound, is_minimum=True)


def at_most(bound: float) -> Goal:
    return Goal(bound, is_minimum=False)


def ratio_at_least(bound: float) -> Goal:
    return Goal(bound, is_minimum=True, of="ratio")


def ratio_at_most(bound: float) -> Goal:
    return Goal(bound, is_minimum=False, of="ratio")


def share_at_least(bound: float) -> Goal:
    return Goal(bound, is_minimum=True, of="share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`value`: None where this system cannot measure it.

    `reference`: the same work without Relaybatch, in the same run.
    `limit`: what nothing can exceed, for example slots divided by the upstream's delay.
    """

    name: str
    value: float | None
    unit: str
    reference: float | None = None
    limit: float | None = None
    goals: tuple[Goal, ...] = ()
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self._divided_by(self.reference)

    @property
    def share(self) -> float | None:
        return self._divided_by(self.limit)

    @property
    def result(self) -> str:
        """`met`, or which goals were missed. Empty without goals, and where nothing was measured."""
        judged = [(goal, self._judged(goal)) for goal in self.goals]
        known = [(goal, value) for goal, value in judged if value is not None]
        missed = [self._goal_text(goal) for goal, value in known if not goal.is_met(value)]
        if not missed:
            return "met" if known else ""
        return "MISSED" if len(missed) == len(self.goals) else f"MISSED {', '.join(missed)}"

    def cells(self) -> tuple[str, ...]:
        share = f"{self.share:.2f} of the limit" if self.share is not None else ""
        return (
            self.name,
            _format(self.value, self.unit),
            _format(self.reference, self.unit) if self.reference is not None else "",
            f"{self.ratio:.2f}" if self.ratio is not None else "",
            ", ".join(self._goal_text(goal) for goal in self.goals),
            "; ".join(words for words in (self.result, share, self.note) if words),
        )

    def _divided_by(self, other: float | None) -> float | None:
        return self.value / other if self.value is not None and other else None

    def _judged(self, goal: Goal) -> float | None:
        return {"value": self.value, "ratio": self.ratio, "share": self.share}[goal.of]

    def _goal_text(self, goal: Goal) -> str:
        sign = "≥" if goal.is_minimum else "≤"
        if goal.of == "ratio":
            return f"ratio {sign} {goal.bound:g}"
        if goal.of == "share":
            return f"{sign} {goal.bound:g} of {self.limit or 0:g} {self.unit}"
        return f"{sign} {goal.bound:g} {self.unit}"


def table(figures: Sequence[Figure]) -> str:
    rows = [COLUMNS, *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return "\n".join(_line(row, widths) for row in rows)


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def spread(values: Sequence[float], unit: str) -> str:
    """How the value came about, for its note: `median of 3; 187 to 225 /s`."""
    if len(values) == 1:
        return "once"
    return f"median of {len(values)}; {_digits(min(values))} to {_format(max(values), unit)}"


def require(condition: bool, message: str) -> None:
    if not condition:
        raise BenchError(message)


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    name, *numbers, note = row
    right = (number.rjust(width) for number, width in zip(numbers, widths[1:-1], strict=True))
    return "  ".join((name.ljust(widths[0]), *right, note)).rstrip()


def _format(value: float | None, unit: str) -> str:
    return "n/a" if value is None else f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"
