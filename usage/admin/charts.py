"""Bars over time as plain SVG: no script, no library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

WIDTH, HEIGHT = 640, 120
_GAP = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """In the drawing's own units, from the left and from the top. `low`: the part of it that is marked."""

    x: str
    y: str
    width: str
    height: str
    low_y: str
    low_height: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    title: str
    most: str
    start: datetime
    end: datetime
    bars: tuple[Bar, ...]
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """The time drawn: from `start` to `end`, in steps."""

    start: datetime
    end: datetime
    step: timedelta


def build_chart(
    title: str,
    points: Sequence[dict[str, Any]],
    *,
    span: TimeSpan,
    value: Callable[[dict[str, Any]], int],
    format_value: Callable[[int], str],
    highlighted: Callable[[dict[str, Any]], int] = lambda _: 0,
) -> Chart:
    """`points`: with the `bucket` of time that each stands for, and none where nothing happened."""
    most = max((value(point) for point in points), default=0)
    return Chart(
        title=title,
        most=format_value(most),
        start=span.start,
        end=span.end,
        bars=tuple(
            _bar(point, span=span, share=_share(value(point), most), low=_share(highlighted(point), most))
            for point in points
        ),
    )


def _share(value: int, most: int) -> float:
    return value / most if most else 0.0


def _bar(point: dict[str, Any], *, span: TimeSpan, share: float, low: float) -> Bar:
    at: datetime = point["bucket"]
    slot = WIDTH * (span.step / (span.end - span.start))
    left = WIDTH * ((at - span.start) / (span.end - span.start))
    # The first interval began before the time that is asked for.
    x, right = max(left + slot * _GAP / 2, 0.0), min(left + slot * (1 - _GAP / 2), float(WIDTH))
    return Bar(
        x=_number(x),
        y=_number(HEIGHT * (1 - share)),
        width=_number(max(right - x, 0.5)),
        height=_number(HEIGHT * share),
        low_y=_number(HEIGHT * (1 - low)),
        low_height=_number(HEIGHT * low),
        words=f"{at:%Y-%m-%d %H:%M}",
    )


def _number(value: float) -> str:
    return f"{value:.2f}"
