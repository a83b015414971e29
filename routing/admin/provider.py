"""The providers' pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from routing.admin.catalog_forms import CatalogForm
from routing.admin.named_rows import NamedRowAdmin
from routing.models import Provider

if TYPE_CHECKING:
    from collections.abc import Mapping


class ProviderForm(CatalogForm):
    section = "providers"

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {}


@admin.register(Provider)
class ProviderAdmin(NamedRowAdmin):
    form = ProviderForm
    fields = ("name", "enabled")
