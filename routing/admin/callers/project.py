"""The projects' pages, with the included usage a month."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin

from routing.admin.catalog_forms import CatalogForm
from routing.admin.named_rows import NamedRowAdmin
from routing.catalog.fields.validators import nanos
from routing.models import Project
from routing.money import format_amount

if TYPE_CHECKING:
    from collections.abc import Mapping


class ProjectForm(CatalogForm):
    section = "projects"
    form_field_names = {"included_usage": "included_amount"}

    unpriced_closes = forms.BooleanField(
        required=False,
        label="Closed by unpriced use",
        help_text="The first call of a month that has no price ends its included usage until the next.",
    )
    included_amount = forms.CharField(
        max_length=60,
        required=False,
        label="Included usage a month",
        help_text=f"An amount in {settings.RELAY_CURRENCY}, as 50.00; empty: no limit.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.included_nanos is not None:
            self.initial["included_amount"] = format_amount(self.instance.included_nanos)

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
        amount = values["included_amount"]
        included = {"amount": amount, "unpriced_closes": values["unpriced_closes"]} if amount else None
        return {"team": values["team"].name, "included_usage": included}

    def clean(self) -> dict[str, Any] | None:
        values = super().clean()
        if values is not None and values.get("unpriced_closes") and not values.get("included_amount"):
            self.add_error("unpriced_closes", "only an included usage can be closed: give an amount")
        if values is not None and not self.errors:
            amount = values["included_amount"]
            self.instance.included_nanos = nanos(amount) if amount else None
            self.instance.included_currency = settings.RELAY_CURRENCY if amount else ""
        return values


@admin.register(Project)
class ProjectAdmin(NamedRowAdmin):
    form = ProjectForm
    fields = ("name", "team", "included_amount", "unpriced_closes", "enabled")
    list_display = ("name", "team", "included_amount", "enabled")
    list_filter = ("enabled", "team")
    list_select_related = ("team",)
    autocomplete_fields = ("team",)

    @admin.display(description="included usage a month")
    def included_amount(self, project: Project) -> str:
        if project.included_nanos is None:
            return "no limit"
        return f"{format_amount(project.included_nanos)} {project.included_currency}"
