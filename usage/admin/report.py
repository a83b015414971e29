"""The totals of the filtered events, as figures and as charts over time, from one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone

from routing.money import format_amount
from usage.admin.charts import Chart, TimeSpan, build_chart
from usage.reporting.queries import INTERVALS, MAX_POINTS

if TYPE_CHECKING:
    from usage.admin.filters import Window
    from usage.models import UsageEventQuerySet

_INPUT_SUMS = ("sum_input", "sum_cache_read", "sum_cache_write")


@dataclass(frozen=True, slots=True)
class Report:
    """`figures`: label -> formatted value."""

    window: Window
    figures: dict[str, str]
    charts: tuple[Chart, ...]


def build_report(events: UsageEventQuerySet, window: Window) -> Report:
    """`events` must be filtered by the window already."""
    points = events.totals_by_interval((), interval=window.interval, limit=MAX_POINTS, durations=False)
    return Report(window=window, figures=_figures(points), charts=_charts(points, window))


def _figures(points: list[dict[str, Any]]) -> dict[str, str]:
    def total(*names: str) -> int:
        return sum(int(point[name] or 0) for point in points for name in names)

    return {
        "Requests": f"{total('requests'):,}",
        "Errors": f"{total('errors'):,}",
        "Tokens in": f"{total(*_INPUT_SUMS):,}",
        "Tokens out": f"{total('sum_output'):,}",
        "Cost": f"{format_amount(total('cost'))} {settings.RELAY_CURRENCY}",
        "Unpriced": f"{total('unpriced'):,}",
    }


def _charts(points: list[dict[str, Any]], window: Window) -> tuple[Chart, ...]:
    now = timezone.now()
    span = TimeSpan(start=now - window.length, end=now, step=INTERVALS[window.interval][0])
    return (
        build_chart(
            "Requests",
            points,
            span=span,
            value=lambda point: int(point["requests"]),
            highlighted=lambda point: int(point["errors"]),
            format_value=lambda count: f"{count:,}",
        ),
        build_chart(
            f"Cost in {settings.RELAY_CURRENCY}",
            points,
            span=span,
            value=lambda point: int(point["cost"] or 0),
            format_value=format_amount,
        ),
    )
