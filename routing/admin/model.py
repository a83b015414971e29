"""The models' pages, with their aliases and bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin

from relaybatch.admin.typed_admin import AnyModelForm
from routing.adapters import ADAPTERS
from routing.admin.catalog_forms import CatalogForm, CatalogFormSet
from routing.admin.named_rows import RowsInline
from routing.admin.price_gaps import PriceGapAdmin
from routing.models import Alias, Binding, Model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet


class AliasForm(AnyModelForm):
    """A pattern `prefix*` is stored as the prefix, with `wildcard`."""

    pattern = forms.CharField(
        max_length=300, strip=False, help_text="Another name, or a prefix and *, as gpt-4o-2024*"
    )

    class Meta:
        fields = ("pattern",)
        model = Alias

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["pattern"] = str(self.instance)

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        typed = values["typed_pattern"] = values.get("pattern", "")
        values["pattern"] = typed.removesuffix("*")
        self.instance.wildcard = typed.endswith("*")
        return values


class AliasFormSet(CatalogFormSet):
    section, list_field = "models", "aliases"

    def entry_to_catalog(self, values: Mapping[str, Any]) -> Any:
        return values["typed_pattern"]


class AliasInline(RowsInline):
    model = Alias
    form = AliasForm
    formset = AliasFormSet
    fields = ("pattern",)


class BindingForm(AnyModelForm):
    adapter = forms.ChoiceField(choices=[(name, name) for name in ADAPTERS])
    upstream_name = forms.CharField(
        max_length=300, strip=False, required=False, help_text="The upstream's own name, when it is another."
    )


class BindingFormSet(CatalogFormSet):
    section, list_field = "models", "bindings"

    def entry_to_catalog(self, values: Mapping[str, Any]) -> Any:
        pricing = values["pricing"]
        return {
            "host": values["host"].name,
            "adapter": values["adapter"],
            "upstream_name": values["upstream_name"] or None,
            "pricing": pricing.name if pricing else None,
        }


class BindingInline(RowsInline):
    model = Binding
    form = BindingForm
    formset = BindingFormSet
    autocomplete_fields = ("host", "pricing")
    fields = ("position", "host", "adapter", "upstream_name", "pricing", "enabled")


class ModelForm(CatalogForm):
    section = "models"

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {"provider": values["provider"].name}


@admin.register(Model)
class CatalogModelAdmin(PriceGapAdmin):
    """Not `ModelAdmin`, which is the name of Django's base class."""

    form = ModelForm
    fields = ("name", "provider", "enabled", "unpriced")
    list_display = ("name", "provider", "enabled")
    list_filter = ("enabled", "provider")
    list_select_related = ("provider",)
    autocomplete_fields = ("provider",)
    inlines = (AliasInline, BindingInline)

    def bindings_of(self, row: Model) -> QuerySet[Binding]:
        return Binding.objects.filter(model=row)
