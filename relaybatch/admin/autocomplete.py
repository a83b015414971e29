"""Fields that refer to another row, found by typing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import ValidationError

if TYPE_CHECKING:
    from django.http import HttpRequest

# What a forged form may hold where a key of the other table belongs; NUL is PostgreSQL's to refuse.
_INVALID_KEY_ERRORS = (ValidationError, ValueError, OverflowError)


class SafeAutocompleteSelect(AutocompleteSelect):
    """Django's own looks up what was posted to draw it again, and fails for what is no key."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        try:
            return super().optgroups(name, value, attr)
        except _INVALID_KEY_ERRORS:
            return super().optgroups(name, [""], attr)


class AutocompleteMixin:
    """For pages and inlines with `autocomplete_fields`."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):  # type: ignore[attr-defined]
            kwargs["widget"] = SafeAutocompleteSelect(db_field, self.admin_site, using=kwargs.get("using"))  # type: ignore[attr-defined]
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]
