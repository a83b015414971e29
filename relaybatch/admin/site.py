"""The admin's front: its name, and its pages in the order in which somebody looks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite

if TYPE_CHECKING:
    from django.http import HttpRequest

# Title -> the models beneath it; the title leads to the first of them. What is not named follows at the end.
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Batches", ("Batch", "BatchItem", "Worker")),
    ("Usage", ("UsageEvent",)),
    ("Callers", ("RelayKey", "ServiceAccount", "User", "Group", "Project", "Team")),
    ("Policies", ("Policy", "RateLimit")),
    ("Catalog", ("Model", "Provider", "Host", "HostKey", "Pricing")),
)


class RelaybatchSite(AdminSite):
    site_header = "Relaybatch"
    site_title = "Relaybatch"
    index_title = "Overview"
    site_url = None

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        apps = super().get_app_list(request, app_label)
        return apps if app_label else _in_sections(apps)


def _in_sections(apps: list[Any]) -> list[Any]:
    models = {model["object_name"]: model for app in apps for model in app["models"]}
    sections = []
    for name, wanted in SECTIONS:
        found = [models.pop(model) for model in wanted if model in models]
        if found:
            label = found[0]["model"]._meta.app_label
            section = {"name": name, "app_label": label, "app_url": found[0]["admin_url"], "models": found}
            sections.append({"has_module_perms": True, **section})
    return sections + _others(apps, models)


def _others(apps: list[Any], left: dict[str, Any]) -> list[Any]:
    rest = [
        {**app, "models": [model for model in app["models"] if model["object_name"] in left]} for app in apps
    ]
    return [app for app in rest if app["models"]]
