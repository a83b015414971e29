"""The base class of the pages whose rows can also be in a catalog file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import messages

from relaybatch.admin.autocomplete import AutocompleteMixin
from relaybatch.admin.model_admin import RelaybatchAdmin
from relaybatch.admin.typed_admin import AnyTabularInline

if TYPE_CHECKING:
    from django.forms import ModelForm
    from django.http import HttpRequest

    from relaybatch.admin.typed_admin import AnyInlineFormSet


class NamedRowAdmin(RelaybatchAdmin):
    """A name cannot be changed: grants, usage events and catalog files refer to the row by it."""

    list_display: Any = ("name", "enabled")
    list_filter: ClassVar[Any] = ("enabled",)
    search_fields: ClassVar[Any] = ("name",)
    ordering = ("name",)
    # Displayed when a row cannot be deleted, above the list of the rows that use it.
    instead_of_deleting = "Disable it instead, or change first what uses it."

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if obj is None else ("name", *fields)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Add what to do instead, where other rows prevent the deletion of one row or of several."""
        collected = super().get_deleted_objects(objs, request)
        _, _, missing_permissions, protected = collected
        if protected and not missing_permissions:
            messages.error(request, self.instead_of_deleting)
        return collected

    def save_formset(
        self,
        request: HttpRequest,
        form: ModelForm[Any],
        formset: AnyInlineFormSet,
        change: bool,
    ) -> None:
        """Delete the changed rows before any is written: two rows may swap values that must be unique."""
        rows = formset.save(commit=False)
        replaced = [row.pk for row in formset.deleted_objects]
        replaced += [row.pk for row, _ in formset.changed_objects]
        formset.get_queryset().model._default_manager.filter(pk__in=replaced).delete()
        for row in rows:
            row.save(force_insert=True)


class RowsInline(AutocompleteMixin, AnyTabularInline):
    extra = 0
    show_change_link = False
