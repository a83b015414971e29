"""The teams' pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from routing.admin.catalog_forms import CatalogForm
from routing.admin.named_rows import NamedRowAdmin
from routing.models import Team

if TYPE_CHECKING:
    from collections.abc import Mapping


class TeamForm(CatalogForm):
    section = "teams"

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {}


@admin.register(Team)
class TeamAdmin(NamedRowAdmin):
    form = TeamForm
    fields = ("name", "enabled")
