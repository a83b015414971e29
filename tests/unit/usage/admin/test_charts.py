"""Bars of a chart: where each stands, and how high it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from usage.admin.charts import Chart, TimeSpan, build_chart

START = datetime(2026, 11, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPAN = TimeSpan(start=START, end=START + 4 * HOUR, step=HOUR)


def chart(*points: tuple[timedelta, int, int]) -> Chart:
    """Of points `(time since the start, value, highlighted value)`."""
    rows: list[dict[str, Any]] = [
        {"bucket": START + since, "value": value, "marked": marked} for since, value, marked in points
    ]
    return build_chart(
        "Calls",
        rows,
        span=SPAN,
        value=lambda point: int(point["value"]),
        highlighted=lambda point: int(point["marked"]),
        format_value=lambda value: f"{value:,}",
    )


def test_a_bar_fills_most_of_its_step_and_its_share_of_the_height() -> None:
    low, high = chart((HOUR, 500, 250), (2 * HOUR, 1000, 0)).bars
    assert (low.x, low.width) == ("172.00", "136.00"), "from 160, 160 wide, less the gap"
    assert (low.y, low.height) == ("60.00", "60.00")
    assert (low.marked_y, low.marked_height) == ("90.00", "30.00")
    assert (high.y, high.height, high.marked_height) == ("0.00", "120.00", "0.00")
    assert high.label == "2026-11-03 02:00"


def test_the_highest_value_is_named() -> None:
    assert chart((HOUR, 500, 0), (2 * HOUR, 1000, 0)).max_value == "1,000"
    assert chart().max_value == "0"


def test_nothing_is_drawn_outside_the_chart() -> None:
    """The first step begins before the period where that is no multiple of a step."""
    first, last = chart((-HOUR / 2, 1, 0), (4 * HOUR - HOUR / 2, 1, 0)).bars
    assert first.x == "0.00"
    assert float(last.x) + float(last.width) == 640


def test_bars_without_a_value_have_no_height() -> None:
    (bar,) = chart((HOUR, 0, 0)).bars
    assert (bar.y, bar.height) == ("120.00", "0.00")
