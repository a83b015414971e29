"""The filters of the list of usage events. There is always a time filter, since only the index on time is fast."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib.admin import SimpleListFilter
from django.utils import timezone

from relaybatch.admin.filters import ChoiceFilter, TextFilter
from usage.reporting.queries import SOURCES, STATUS_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class Window:
    """How far back the list goes. `interval`: the step of its charts, a name in `usage.reporting.queries.INTERVALS`."""

    name: str
    label: str
    length: timedelta
    interval: str


WINDOWS = {
    window.name: window
    for window in (
        Window("1h", "Last hour", timedelta(hours=1), "1m"),
        Window("24h", "Last 24 hours", timedelta(hours=24), "1h"),
        Window("7d", "Last 7 days", timedelta(days=7), "1h"),
        Window("30d", "Last 30 days", timedelta(days=30), "1d"),
        Window("365d", "Last 365 days", timedelta(days=365), "1d"),
    )
}
DEFAULT_WINDOW = "24h"


def selected_window(request: HttpRequest) -> Window:
    return WINDOWS.get(request.GET.get(SinceFilter.parameter_name, ""), WINDOWS[DEFAULT_WINDOW])


class SinceFilter(SimpleListFilter):
    title = "time"
    parameter_name = "since"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(window.name, window.label) for window in WINDOWS.values()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(at__gte=timezone.now() - selected_window(request).length)

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Without Django's `All`."""
        for name, label in self.lookup_choices:
            yield {
                "selected": (self.value() or DEFAULT_WINDOW) == name,
                "query_string": changelist.get_query_string({self.parameter_name: name}),
                "display": label,
            }


class SourceFilter(ChoiceFilter):
    title = "source"
    parameter_name = "source"
    options = SOURCES


class StatusFilter(ChoiceFilter):
    title = "upstream status"
    parameter_name = "status_class"
    options = tuple(STATUS_CLASSES)

    def label(self, option: str) -> str:
        return "none answered" if option == "0xx" else option

    def filter_rows(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        first = STATUS_CLASSES[value] * 100
        return rows.filter(status__range=(first, first + 99))


def exact_filter(column: str, title: str, hint: str = "exact name") -> type[TextFilter]:
    """A filter class that compares the column with an exact text."""
    return type(
        f"{column.title()}Filter",
        (TextFilter,),
        {"title": title, "parameter_name": column, "column": column, "hint": hint},
    )


FILTERS = (
    SinceFilter,
    StatusFilter,
    SourceFilter,
    exact_filter("model", "model"),
    exact_filter("host", "host"),
    exact_filter("project", "project"),
    exact_filter("policy", "policy"),
    exact_filter("error_kind", "error code", "as rate_limited"),
    exact_filter("public_batch_id", "batch", "its id"),
)
