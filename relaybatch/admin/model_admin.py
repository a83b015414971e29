"""What every admin page of the service shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import ShowFacets
from django.utils.text import capfirst

from relaybatch.admin.autocomplete import AutocompleteMixin
from relaybatch.admin.typed import AnyModelAdmin

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_EXACT_LOOKUPS = ("exact", "id__exact", "isnull")


class RelaybatchAdmin(AutocompleteMixin, AnyModelAdmin):
    """Lists can be narrowed by their own filters alone: any other lookup in the address would answer questions
    about columns that are not shown (`?secret_encrypted__startswith=…`), or read whole tables."""

    show_full_result_count = False
    # They count every row of every choice.
    show_facets = ShowFacets.NEVER

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        title = {"title": capfirst(self.opts.verbose_name_plural)}
        return super().changelist_view(request, title | (extra_context or {}))

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup in {
            name for entry in self.get_list_filter(request) for name in _query_parameters(entry)
        }


class ReadOnlyAdmin(RelaybatchAdmin):
    """Nobody adds, changes or deletes here; actions ask for permissions of their own."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def _query_parameters(entry: Any) -> set[str]:
    if isinstance(entry, str):
        return {f"{entry}__{lookup}" for lookup in _EXACT_LOOKUPS}
    return {entry.parameter_name}
