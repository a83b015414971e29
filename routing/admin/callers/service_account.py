"""The service accounts' pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from routing.admin.catalog_forms import CatalogForm
from routing.admin.named_rows import NamedRowAdmin
from routing.models import ServiceAccount

if TYPE_CHECKING:
    from collections.abc import Mapping


class ServiceAccountForm(CatalogForm):
    section = "service_accounts"

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
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
