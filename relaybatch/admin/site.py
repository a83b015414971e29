"""The admin site: its name, and the sections of its front page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite

if TYPE_CHECKING:
    from django.http import HttpRequest

# Title -> its models; the title links to the first of them. Models that are not named here follow at the end.
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Batches", ("Batch", "BatchItem", "File", "Worker")),
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
        return apps if app_label else _group_by_section(apps)


def _group_by_section(apps: list[Any]) -> list[Any]:
    models = {model["object_name"]: model for app in apps for model in app["models"]}
    sections = []
    for name, model_names in SECTIONS:
        found = [models.pop(model) for model in model_names if model in models]
        if found:
            label = found[0]["model"]._meta.app_label
            section = {"name": name, "app_label": label, "app_url": found[0]["admin_url"], "models": found}
            sections.append({"has_module_perms": True, **section})
    return sections + _remaining_apps(apps, models)


def _remaining_apps(apps: list[Any], remaining: dict[str, Any]) -> list[Any]:
    filtered = [
        {**app, "models": [model for model in app["models"] if model["object_name"] in remaining]}
        for app in apps
    ]
    return [app for app in filtered if app["models"]]
