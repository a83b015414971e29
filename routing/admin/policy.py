"""The policies' pages, with grants and host keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin

from routing.admin.catalog_forms import CatalogForm, CatalogFormSet
from routing.admin.named_rows import NamedRowAdmin, RowsInline
from routing.models import Policy, PolicyHostKey

if TYPE_CHECKING:
    from collections.abc import Mapping


class GrantsField(forms.CharField):
    """One grant a line. A model's name may be any text: grants that do not fit on a line are written as a JSON list."""

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
        return "\n".join(value) if all(map(_fits_on_a_line, value)) else json.dumps(value)

    def to_python(self, value: Any) -> Any:
        text = str(super().to_python(value) or "")
        if text.lstrip().startswith("["):
            return _parse_json_grants(text)
        return [line.strip() for line in text.splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(list(initial or []) != self.to_python(data))
        except forms.ValidationError:
            return True


class PolicyForm(CatalogForm):
    section = "policies"
    form_field_names = {"models": "models_granted"}

    models_granted = GrantsField()

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
        rate_limit = values["rate_limit"]
        return {
            "models": values["models_granted"],
            "key_selection": values["key_selection"],
            "rate_limit": rate_limit.name if rate_limit else None,
        }


class PolicyHostKeyFormSet(CatalogFormSet):
    section, list_field = "policies", "host_keys"

    def entry_to_catalog(self, values: Mapping[str, Any]) -> Any:
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


def _fits_on_a_line(grant: str) -> bool:
    return grant.splitlines() == [grant] and grant == grant.strip() and not grant.startswith("[")


def _parse_json_grants(text: str) -> list[str]:
    error = forms.ValidationError("expected a grant a line, or one JSON list of texts")
    try:
        grants = json.loads(text)
    except ValueError:
        raise error from None
    if not isinstance(grants, list) or not all(isinstance(grant, str) for grant in grants):
        raise error
    return grants
