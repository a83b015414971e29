"""Bar charts over time as SVG, drawn by the template without script or library."""

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
    """Coordinates and sizes in SVG units, from the top left. `marked_y`, `marked_height`: its highlighted part."""

    x: str
    y: str
    width: str
    height: str
    marked_y: str
    marked_height: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    title: str
    max_value: str
    start: datetime
    end: datetime
    bars: tuple[Bar, ...]
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """The period on the x axis, from `start` to `end`; a bar covers one `step`."""

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
    """`points`: one for each step with events; its `bucket` is the step's start. `highlighted`: the marked share."""
    max_value = max((value(point) for point in points), default=0)
    return Chart(
        title=title,
        max_value=format_value(max_value),
        start=span.start,
        end=span.end,
        bars=tuple(
            _build_bar(
                point,
                span=span,
                share=_share(value(point), max_value),
                marked=_share(highlighted(point), max_value),
            )
            for point in points
        ),
    )


def _share(value: int, max_value: int) -> float:
    return value / max_value if max_value else 0.0


def _build_bar(point: dict[str, Any], *, span: TimeSpan, share: float, marked: float) -> Bar:
    at: datetime = point["bucket"]
    slot = WIDTH * (span.step / (span.end - span.start))
    left = WIDTH * ((at - span.start) / (span.end - span.start))
    # The first step may begin before the period does.
    x, right = max(left + slot * _GAP / 2, 0.0), min(left + slot * (1 - _GAP / 2), float(WIDTH))
    return Bar(
        x=_format_number(x),
        y=_format_number(HEIGHT * (1 - share)),
        width=_format_number(max(right - x, 0.5)),
        height=_format_number(HEIGHT * share),
        marked_y=_format_number(HEIGHT * (1 - marked)),
        marked_height=_format_number(HEIGHT * marked),
        label=f"{at:%Y-%m-%d %H:%M}",
    )


def _format_number(value: float) -> str:
    return f"{value:.2f}"
