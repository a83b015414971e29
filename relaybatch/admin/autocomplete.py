"""Foreign keys as autocomplete fields that survive invalid values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import ValidationError

if TYPE_CHECKING:
    from django.http import HttpRequest

# Raised for a posted value that is no key of the other table; a NUL character is rejected by PostgreSQL.
_INVALID_KEY_ERRORS = (ValidationError, ValueError, OverflowError)


class SafeAutocompleteSelect(AutocompleteSelect):
    """Django's widget looks up the posted value to render it again, and raises if it is no key."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        try:
            return super().optgroups(name, value, attr)
        except _INVALID_KEY_ERRORS:
            return super().optgroups(name, [""], attr)


class AutocompleteMixin:
    """For admin pages and inlines with `autocomplete_fields`."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):  # type: ignore[attr-defined]
            kwargs["widget"] = SafeAutocompleteSelect(db_field, self.admin_site, using=kwargs.get("using"))  # type: ignore[attr-defined]
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]
