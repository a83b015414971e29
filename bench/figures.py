"""A measured figure with its reference and target, and the table of figures."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = ("figure", "measured", "reference", "ratio", "target", "")


class BenchError(Exception):
    """The work was not done correctly, so that its figure would be meaningless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`reference`: the same work without Relaybatch, in the same run.

    `target`: for the value, or for the ratio if `of_ratio`; a minimum if `more_is_better`, else a maximum.
    """

    name: str
    value: float | None
    unit: str
    reference: float | None = None
    target: float | None = None
    of_ratio: bool = False
    more_is_better: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.value / self.reference if self.value is not None and self.reference else None

    @property
    def target_result(self) -> str:
        judged = self.ratio if self.of_ratio else self.value
        if self.target is None or judged is None:
            return ""
        return "met" if (judged >= self.target) == self.more_is_better or judged == self.target else "MISSED"

    def cells(self) -> tuple[str, ...]:
        ratio = f"{self.ratio:.2f}" if self.ratio is not None else ""
        return (
            self.name,
            _format(self.value, self.unit),
            _format(self.reference, self.unit) if self.reference is not None else "",
            ratio,
            self._target(),
            " ".join(word for word in (self.target_result, self.note) if word),
        )

    def _target(self) -> str:
        if self.target is None:
            return ""
        sign = "≥" if self.more_is_better else "≤"
        return f"ratio {sign} {self.target:g}" if self.of_ratio else f"{sign} {self.target:g} {self.unit}"


def table(figures: Sequence[Figure]) -> str:
    rows = [COLUMNS, *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return "\n".join(_line(row, widths) for row in rows)


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def require(condition: bool, message: str) -> None:
    if not condition:
        raise BenchError(message)


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    name, *numbers, note = row
    right = (number.rjust(width) for number, width in zip(numbers, widths[1:-1], strict=True))
    return "  ".join((name.ljust(widths[0]), *right, note)).rstrip()


def _format(value: float | None, unit: str) -> str:
    if value is None:
        return "n/a"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f} {unit}".rstrip()
