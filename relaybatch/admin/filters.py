"""Filters of lists: a choice of a few values, or a text field where there are too many to list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.views.main import PAGE_VAR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest


class ChoiceFilter(SimpleListFilter):
    """One of `options`; any other value in the query string is ignored."""

    options: Sequence[str] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(option, self.label(option)) for option in self.options]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return self.filter_rows(queryset, value) if value and value in self.options else queryset

    def label(self, option: str) -> str:
        return option

    def filter_rows(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        return rows.filter(**{str(self.parameter_name): value})


class TextFilter(SimpleListFilter):
    """An exact text, typed into the sidebar. It is compared with `column`, unless `filter_rows` is overridden."""

    template = "admin/text_filter.html"
    column = ""
    hint = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return []

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = (self.value() or "").strip()
        if not value:
            return queryset
        return queryset.none() if "\0" in value else self.filter_rows(queryset, value)

    def filter_rows(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        return rows.filter(**{self.column: value})

    def suggestions(self) -> list[str]:
        """Values that the browser offers while somebody types."""
        return []

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        replaced = (self.parameter_name, PAGE_VAR)
        yield {
            "name": self.parameter_name,
            "value": self.value() or "",
            "hint": self.hint,
            "suggestions": self.suggestions(),
            "other_parameters": [
                (name, text) for name, text in changelist.params.items() if name not in replaced
            ],
            "clear_query": changelist.get_query_string(remove=[str(self.parameter_name)]),
        }
