"""Teams, projects, service accounts and people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from relaybatch.admin.autocomplete import AutocompleteMixin
from routing.admin.catalog_forms import CatalogForm
from routing.admin.named_rows import NamedRowAdmin
from routing.catalog.validators import nanos
from routing.models import Project, ServiceAccount, Team, User
from routing.money import format_amount

if TYPE_CHECKING:
    from collections.abc import Mapping

    PeoplePage = UserAdmin[Any]
else:
    PeoplePage = UserAdmin


class TeamForm(CatalogForm):
    section = "teams"

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {}


@admin.register(Team)
class TeamAdmin(NamedRowAdmin):
    form = TeamForm
    fields = ("name", "enabled")


class ProjectForm(CatalogForm):
    section = "projects"
    words = {"included_usage": "included_amount"}

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

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
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


class ServiceAccountForm(CatalogForm):
    section = "service_accounts"

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        policy = values["policy"]
        return {"project": values["project"].name, "policy": policy.name if policy else None}


@admin.register(ServiceAccount)
class ServiceAccountAdmin(NamedRowAdmin):
    form = ServiceAccountForm
    fields = ("name", "project", "policy", "enabled")
    list_display = ("name", "project", "policy", "enabled")
    list_filter = ("enabled",)
    list_select_related = ("project", "policy")
    autocomplete_fields = ("project", "policy")


@admin.register(User)
class UserPage(AutocompleteMixin, PeoplePage):
    """Django's own, with what a person calls under."""

    fieldsets = (*UserAdmin.fieldsets, ("Calls", {"fields": ("project", "policy")}))  # type: ignore[misc]
    list_display = ("username", "project", "policy", "is_active", "is_staff")
    list_filter = ("is_active", "is_staff", "is_superuser")
    list_select_related = ("project", "policy")
    autocomplete_fields = ("project", "policy")
    show_full_result_count = False
