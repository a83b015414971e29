"""Lists of tables with millions of rows: no page counts, sorts or reads all of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.main import ERROR_FLAG, ORDER_VAR, PAGE_VAR, ChangeList
from django.db import connection

from relaybatch.admin.model_admin import ReadOnlyAdmin
from relaybatch.admin.typed_admin import AnyPaginator
from relaybatch.db.snapshot import one_snapshot

if TYPE_CHECKING:
    from django.core.paginator import Paginator
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

MAX_COUNTED_ROWS = 10_000
_NON_FILTER_PARAMETERS = {PAGE_VAR, ORDER_VAR, ERROR_FLAG}


class LargePaginator(AnyPaginator):
    """Count at most MAX_COUNTED_ROWS + 1 rows; beyond that, use PostgreSQL's estimate where the list is unfiltered."""

    def __init__(self, rows: QuerySet[Any], per_page: int, *, whole_table: bool) -> None:
        super().__init__(rows, per_page)
        self._rows = rows
        self._whole_table = whole_table

    @cached_property
    def count(self) -> int:
        counted = self._rows.order_by()[: MAX_COUNTED_ROWS + 1].count()
        if counted <= MAX_COUNTED_ROWS or not self._whole_table:
            return counted
        return max(counted, _estimated_rows(self._rows.model._meta.db_table))

    @property
    def note(self) -> str:
        if self.count <= MAX_COUNTED_ROWS:
            return ""
        if self._whole_table:
            return "The number is an estimate: the table is too large to count."
        return f"More than {MAX_COUNTED_ROWS:,} match. Narrow the filters to reach the others."


class LargeChangeList(ChangeList):
    note = ""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list: Any = list(self.result_list)
        if isinstance(self.paginator, LargePaginator):
            self.note = self.paginator.note
        self.attach_related(self.result_list)

    def attach_related(self, rows: list[Any]) -> None:
        """Fetch what the rows of one page show beside their columns, for all rows at once."""


class FilterOnlyChangeList(ChangeList):
    """Filters like the list, and reads no row."""

    def get_results(self, request: HttpRequest) -> None:
        return


class LargeListAdmin(ReadOnlyAdmin):
    """A read-only list, newest rows first by an index, that cannot be sorted otherwise."""

    change_list_template = "admin/large_list.html"
    changelist: type[LargeChangeList] = LargeChangeList
    list_per_page = 100
    list_max_show_all = 0
    sortable_by = ()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Read the count and the rows from one snapshot. A POST is an action, which writes, so it gets none."""
        if request.method == "POST":
            return super().changelist_view(request, extra_context)
        with one_snapshot():
            return super().changelist_view(request, extra_context)

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[ChangeList]:
        return self.changelist

    def get_paginator(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        per_page: int,
        orphans: int = 0,
        allow_empty_first_page: bool = True,
    ) -> Paginator[Any]:
        return LargePaginator(queryset, per_page, whole_table=self.is_unfiltered(request))

    def is_unfiltered(self, request: HttpRequest) -> bool:
        return set(request.GET) <= _NON_FILTER_PARAMETERS


def _estimated_rows(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [table])
        return int(cursor.fetchone()[0])
