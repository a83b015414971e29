"""Usage events: what each attempt did and cost, with the totals and charts of what is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.utils import timezone

from routing.admin.cells import two_lines
from routing.admin.large_lists import LargeChangeList, LargeListPage
from routing.amounts import shown_amount
from usage.admin.charts import Chart, Span, chart
from usage.admin.filters import FILTERS, chosen_window
from usage.filters import INTERVALS, EventFilter, ReportQuery
from usage.models import UsageEvent
from usage.reports import timeseries

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from usage.admin.filters import Window
    from usage.models import UsageEventQuerySet

_COLUMNS = (
    *("id", "at", "source", "late", "public_batch_id", "item_idx", "custom_id", "attempt"),
    *("status", "error_kind", "duration_ms", "upstream_ms", "keys_tried"),
    *("requested_model", "model", "provider", "host", "host_key", "adapter"),
    *("policy", "project", "team", "principal_kind", "principal_id", "credential_kind", "credential_id"),
    *("input", "cache_read", "cache_write", "output", "reasoning", "cache_write_5m", "cache_write_1h"),
    *("cost", "cost_breakdown", "pricing"),
)


class EventChangeList(LargeChangeList):
    """Its totals and charts are those of the rows chosen, not of the page."""

    totals: dict[str, str]
    charts: tuple[Chart, ...]

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.window = chosen_window(request)
        points = _points(self.queryset, self.window)
        self.totals = _totals(points)
        self.charts = _charts(points, self.window)


@admin.register(UsageEvent)
class UsageEventPage(LargeListPage):
    changelist = EventChangeList
    change_list_template = "admin/usage/usageevent/change_list.html"
    list_display = (
        *("at_shown", "shown_model", "status", "error_kind", "tokens", "cost", "duration", "project"),
        "batch_and_item",
    )
    list_display_links = ("at_shown",)
    list_filter = FILTERS
    ordering = ("-at", "-id")
    fields = _COLUMNS
    readonly_fields = _COLUMNS

    def shows_all(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description="at (UTC)")
    def at_shown(self, event: UsageEvent) -> str:
        return f"{event.at:%Y-%m-%d %H:%M:%S}"

    @admin.display(description="model")
    def shown_model(self, event: UsageEvent) -> str:
        return event.model or event.requested_model

    @admin.display(description="tokens in / out")
    def tokens(self, event: UsageEvent) -> str:
        if event.input is None:
            return "-"
        read = event.input + (event.cache_read or 0) + (event.cache_write or 0)
        return f"{read:,} / {event.output or 0:,}"

    @admin.display(description="cost")
    def cost(self, event: UsageEvent) -> str:
        return (
            "unpriced" if event.cost_nanos is None else f"{shown_amount(event.cost_nanos)} {event.currency}"
        )

    @admin.display(description="ms")
    def duration(self, event: UsageEvent) -> str:
        return f"{event.duration_ms:,}"

    @admin.display(description="batch, item and attempt")
    def batch_and_item(self, event: UsageEvent) -> SafeString:
        item = "" if event.item_idx is None else f"item {event.item_idx}, "
        late = ", late" if event.late else ""
        return two_lines(event.public_batch_id, f"{item}attempt {event.attempt}{late}")


def _points(events: UsageEventQuerySet, window: Window) -> list[dict[str, Any]]:
    """The series that the usage API would answer; the events are narrowed already."""
    query = ReportQuery(
        filter=EventFilter(columns={}), groups=(), start=None, end=timezone.now(), interval=window.interval
    )
    rows = timeseries(events, query=query)["rows"]
    points: list[dict[str, Any]] = rows[0]["points"] if rows else []
    return points


def _totals(points: list[dict[str, Any]]) -> dict[str, str]:
    sums = {
        name: sum(point[name] for point in points)
        for name in ("requests", "errors", "unpriced", "cost_nanos")
    }
    read = ("input", "cache_read", "cache_write")
    return {
        **{name: f"{sums[name]:,}" for name in ("requests", "errors", "unpriced")},
        "cost": f"{shown_amount(sums['cost_nanos'])} {settings.RELAY_CURRENCY}",
        "tokens_in": f"{sum(point['tokens'].get(meter, 0) for point in points for meter in read):,}",
        "tokens_out": f"{sum(point['tokens'].get('output', 0) for point in points):,}",
    }


def _charts(points: list[dict[str, Any]], window: Window) -> tuple[Chart, ...]:
    now = timezone.now()
    span = Span(start=now - window.length, end=now, step=INTERVALS[window.interval][0])
    return (
        chart(
            "Requests",
            points,
            span=span,
            value=lambda point: int(point["requests"]),
            marked=lambda point: int(point["errors"]),
            shown=lambda most: f"{most:,}",
        ),
        chart(
            f"Cost in {settings.RELAY_CURRENCY}",
            points,
            span=span,
            value=lambda point: int(point["cost_nanos"]),
            shown=shown_amount,
        ),
    )
