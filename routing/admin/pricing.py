"""The price lists' pages, with their rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import F

from relaybatch.admin.typed_admin import AnyModelForm
from routing.admin.catalog_forms import CatalogForm, CatalogFormSet
from routing.admin.named_rows import RowsInline
from routing.admin.price_gaps import PriceGapAdmin
from routing.catalog.fields.validators import nanos
from routing.models import Binding, Pricing, Rate
from routing.money import format_amount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from django.http import HttpRequest


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
        text = str(self.cleaned_data["per_million"])
        try:
            self.instance.rate_nanos = nanos(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error
        return text


class RateFormSet(CatalogFormSet):
    section, list_field = "pricing", "rates"

    def entry_to_catalog(self, values: Mapping[str, Any]) -> Any:
        return {name: values[name] for name in ("meter", "per_million", "above_tokens")}


class RateInline(RowsInline):
    model = Rate
    form = RateForm
    formset = RateFormSet
    fields = ("meter", "per_million", "above_tokens")

    def per_million(self, rate: Rate) -> str:
        """For users who may only view; others get the form's field."""
        return format_amount(rate.rate_nanos)


class PricingForm(CatalogForm):
    section = "pricing"

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
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
        """Increment the version when rates or currency change: usage events keep the version they were priced at."""
        before = _read_rates(form.instance)
        super().save_related(request, form, formsets, change)
        if change and ("currency" in form.changed_data or before != _read_rates(form.instance)):
            Pricing.objects.filter(pk=form.instance.pk).update(version=F("version") + 1)


def _read_rates(pricing: Pricing) -> list[tuple[str, int, int]]:
    rates = Rate.objects.filter(pricing=pricing).order_by("meter", "above_tokens")
    return list(rates.values_list("meter", "above_tokens", "rate_nanos"))
