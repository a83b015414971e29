"""The base classes of all admin pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import ShowFacets
from django.utils.text import capfirst

from relaybatch.admin.autocomplete import AutocompleteMixin
from relaybatch.admin.typed_admin import AnyModelAdmin

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_EXACT_LOOKUPS = ("exact", "id__exact", "isnull")


class RelaybatchAdmin(AutocompleteMixin, AnyModelAdmin):
    """Lists can only be filtered by their own filters.

    Any other lookup in the query string could reveal columns that are not displayed
    (`?secret_encrypted__startswith=…`), or read whole tables.
    """

    show_full_result_count = False
    # Facets would count the rows of every choice.
    show_facets = ShowFacets.NEVER

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        title = {"title": capfirst(self.opts.verbose_name_plural)}
        return super().changelist_view(request, title | (extra_context or {}))

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup in {
            name for entry in self.get_list_filter(request) for name in _query_parameters(entry)
        }


class ReadOnlyAdmin(RelaybatchAdmin):
    """Nobody can add, change or delete rows; actions check their own permissions."""

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
