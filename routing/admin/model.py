"""Providers, models with their aliases and bindings, and prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import F

from relaybatch.admin.typed import AnyModelForm
from routing.adapters import ADAPTERS
from routing.admin.catalog_forms import CatalogForm, CatalogFormSet
from routing.admin.named_rows import NamedRowAdmin, RowsInline
from routing.admin.price_gaps import PriceGapAdmin
from routing.catalog.validators import nanos
from routing.models import Alias, Binding, Model, Pricing, Provider, Rate
from routing.money import format_amount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from django.http import HttpRequest


class ProviderForm(CatalogForm):
    section = "providers"

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {}


@admin.register(Provider)
class ProviderAdmin(NamedRowAdmin):
    form = ProviderForm
    fields = ("name", "enabled")


class AliasForm(AnyModelForm):
    """`prefix*` is stored as the prefix."""

    pattern = forms.CharField(
        max_length=300, strip=False, help_text="Another name, or a beginning and *, as gpt-4o-2024*"
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
        written = values["written"] = values.get("pattern", "")
        values["pattern"] = written.removesuffix("*")
        self.instance.wildcard = written.endswith("*")
        return values


class AliasFormSet(CatalogFormSet):
    section, key = "models", "aliases"

    def entry(self, values: Mapping[str, Any]) -> Any:
        return values["written"]


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
    section, key = "models", "bindings"

    def entry(self, values: Mapping[str, Any]) -> Any:
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

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {"provider": values["provider"].name}


@admin.register(Model)
class CatalogModelAdmin(PriceGapAdmin):
    form = ModelForm
    fields = ("name", "provider", "enabled", "unpriced")
    list_display = ("name", "provider", "enabled")
    list_filter = ("enabled", "provider")
    list_select_related = ("provider",)
    autocomplete_fields = ("provider",)
    inlines = (AliasInline, BindingInline)

    def bindings_of(self, row: Model) -> QuerySet[Binding]:
        return Binding.objects.filter(model=row)


class RateForm(AnyModelForm):
    per_million = forms.CharField(max_length=60, help_text="Price of a million tokens, as 2.50")

    class Meta:
        fields = ("meter", "above_tokens")
        model = Rate

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["per_million"] = format_amount(self.instance.rate_nanos)

    def clean_per_million(self) -> str:
        written = str(self.cleaned_data["per_million"])
        try:
            self.instance.rate_nanos = nanos(written)
        except ValueError as problem:
            raise forms.ValidationError(str(problem)) from problem
        return written


class RateFormSet(CatalogFormSet):
    section, key = "pricing", "rates"

    def entry(self, values: Mapping[str, Any]) -> Any:
        return {name: values[name] for name in ("meter", "per_million", "above_tokens")}


class RateInline(RowsInline):
    model = Rate
    form = RateForm
    formset = RateFormSet
    fields = ("meter", "per_million", "above_tokens")

    def per_million(self, rate: Rate) -> str:
        """For those who only look; others see the form's field."""
        return format_amount(rate.rate_nanos)


class PricingForm(CatalogForm):
    section = "pricing"

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {"currency": values["currency"]}


@admin.register(Pricing)
class PricingAdmin(PriceGapAdmin):
    form = PricingForm
    fields = ("name", "currency", "version", "enabled", "unpriced")
    readonly_fields = ("version", "unpriced")
    list_display = ("name", "currency", "version", "enabled")
    inlines = (RateInline,)
    instead_of_deleting = (
        "Without these prices, and also while they are disabled, what is called by the bindings below has no price "
        "and counts for no allowance. Give them other prices first."
    )

    def bindings_of(self, row: Pricing) -> QuerySet[Binding]:
        return Binding.objects.filter(pricing=row)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"currency": settings.RELAY_CURRENCY, **super().get_changeform_initial_data(request)}

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: Any) -> None:
        """Events keep the version that they were priced at: another price is another version."""
        before = _prices(form.instance)
        super().save_related(request, form, formsets, change)
        if change and ("currency" in form.changed_data or before != _prices(form.instance)):
            Pricing.objects.filter(pk=form.instance.pk).update(version=F("version") + 1)


def _prices(pricing: Pricing) -> list[tuple[str, int, int]]:
    rates = Rate.objects.filter(pricing=pricing).order_by("meter", "above_tokens")
    return list(rates.values_list("meter", "above_tokens", "rate_nanos"))
