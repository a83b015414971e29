"""Policies with their grants and host keys, and rate limits with their rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin

from relaybatch.admin.typed import AnyModelForm
from routing.admin.catalog_forms import CatalogForm, CatalogFormSet, find_row_problems
from routing.admin.named_rows import NamedRowAdmin, RowsInline
from routing.catalog.nested_records import RULE_METERS
from routing.models import Policy, PolicyHostKey, RateLimit, RateLimitRule

if TYPE_CHECKING:
    from collections.abc import Mapping


class GrantsField(forms.CharField):
    """A grant a line. Models may be called anything: grants that lines cannot hold are written as a JSON list."""

    widget = forms.Textarea(attrs={"rows": 6, "cols": 80})

    def __init__(self) -> None:
        super().__init__(
            required=False,
            strip=False,
            label="Grants",
            help_text="One a line: provider, provider/model, provider/model@host, provider@host or @host. "
            "None at all grants every model that the host keys reach.",
        )

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return "\n".join(value) if all(map(_fits_a_line, value)) else json.dumps(value)

    def to_python(self, value: Any) -> Any:
        text = str(super().to_python(value) or "")
        if text.lstrip().startswith("["):
            return _grants_of_json(text)
        return [line.strip() for line in text.splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(list(initial or []) != self.to_python(data))
        except forms.ValidationError:
            return True


class PolicyForm(CatalogForm):
    section = "policies"
    words = {"models": "models_granted"}

    models_granted = GrantsField()

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        rate_limit = values["rate_limit"]
        return {
            "models": values["models_granted"],
            "key_selection": values["key_selection"],
            "rate_limit": rate_limit.name if rate_limit else None,
        }


class PolicyHostKeyFormSet(CatalogFormSet):
    section, key = "policies", "host_keys"

    def entry(self, values: Mapping[str, Any]) -> Any:
        return values["host_key"].name


class PolicyHostKeyInline(RowsInline):
    model = PolicyHostKey
    formset = PolicyHostKeyFormSet
    autocomplete_fields = ("host_key",)
    fields = ("position", "host_key")
    verbose_name = "host key"
    verbose_name_plural = "host keys, tried in the order of their positions"


@admin.register(Policy)
class PolicyAdmin(NamedRowAdmin):
    form = PolicyForm
    fields = ("name", "models_granted", "key_selection", "rate_limit", "enabled")
    list_display = ("name", "grants", "key_selection", "rate_limit", "enabled")
    list_select_related = ("rate_limit",)
    autocomplete_fields = ("rate_limit",)
    inlines = (PolicyHostKeyInline,)
    instead_of_deleting = (
        "Without this policy, the keys below would fall back to that of their account or user, which may allow more. "
        "Disable it instead, or first give these keys another policy, or revoke them."
    )

    @admin.display(description="grants")
    def grants(self, policy: Policy) -> str:
        return ", ".join(policy.models_granted) or "all that its host keys reach"


class RuleForm(AnyModelForm):
    meter = forms.ChoiceField(choices=[(name, name) for name in RULE_METERS])

    def clean(self) -> dict[str, Any]:
        """Before the row's own constraint is asked, which has no words for people."""
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            for _, words in find_row_problems("rate_limits", {"name": "new", "rules": [_rule(values)]}):
                self.add_error("window_seconds", words)
        return values


class RuleFormSet(CatalogFormSet):
    section, key = "rate_limits", "rules"

    def entry(self, values: Mapping[str, Any]) -> Any:
        return _rule(values)


class RuleInline(RowsInline):
    model = RateLimitRule
    form = RuleForm
    formset = RuleFormSet
    fields = ("position", "meter", "amount", "window_seconds", "strategy")
    verbose_name = "rule"


class RateLimitForm(CatalogForm):
    section = "rate_limits"

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
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


def _fits_a_line(grant: str) -> bool:
    return grant.splitlines() == [grant] and grant == grant.strip() and not grant.startswith("[")


def _grants_of_json(text: str) -> list[str]:
    problem = forms.ValidationError("expected a grant a line, or one JSON list of texts")
    try:
        grants = json.loads(text)
    except ValueError:
        raise problem from None
    if not isinstance(grants, list) or not all(isinstance(grant, str) for grant in grants):
        raise problem
    return grants
