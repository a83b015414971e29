"""The rate limits' pages, with their rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin

from relaybatch.admin.typed_admin import AnyModelForm
from routing.admin.catalog_forms import CatalogForm, CatalogFormSet, find_row_problems
from routing.admin.named_rows import NamedRowAdmin, RowsInline
from routing.catalog.fields.nested_records import RULE_METERS
from routing.models import RateLimit, RateLimitRule

if TYPE_CHECKING:
    from collections.abc import Mapping


class RuleForm(AnyModelForm):
    meter = forms.ChoiceField(choices=[(name, name) for name in RULE_METERS])

    def clean(self) -> dict[str, Any]:
        """Check the rule before the model's own constraint does, whose message means nothing to users."""
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            for _, message in find_row_problems("rate_limits", {"name": "new", "rules": [_rule(values)]}):
                self.add_error("window_seconds", message)
        return values


class RuleFormSet(CatalogFormSet):
    section, list_field = "rate_limits", "rules"

    def entry_to_catalog(self, values: Mapping[str, Any]) -> Any:
        return _rule(values)


class RuleInline(RowsInline):
    model = RateLimitRule
    form = RuleForm
    formset = RuleFormSet
    fields = ("position", "meter", "amount", "window_seconds", "strategy")
    verbose_name = "rule"


class RateLimitForm(CatalogForm):
    section = "rate_limits"

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {}


@admin.register(RateLimit)
class RateLimitAdmin(NamedRowAdmin):
    form = RateLimitForm
    fields = ("name", "enabled")
    inlines = (RuleInline,)
    instead_of_deleting = (
        "Without this rate limit, and also while it is disabled, what is below has no limit. "
        "Give it another one first."
    )


def _rule(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] or None for name in ("meter", "amount", "window_seconds", "strategy")}
