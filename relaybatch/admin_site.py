"""The admin's front: its name, and its pages in the order in which somebody looks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite

if TYPE_CHECKING:
    from django.http import HttpRequest

# Title -> the app whose page the title leads to, and the models beneath it. What is not named follows at the end.
SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Batches", "batches", ("Batch", "BatchItem", "Worker")),
    ("Usage", "usage", ("UsageEvent",)),
    ("Callers", "routing", ("RelayKey", "ServiceAccount", "User", "Group", "Project", "Team")),
    ("Policies", "routing", ("Policy", "RateLimit")),
    ("Catalog", "routing", ("Model", "Provider", "Host", "HostKey", "Pricing")),
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
    by_label = {app["app_label"]: app for app in apps}
    sections = []
    for name, label, wanted in SECTIONS:
        found = [models.pop(model) for model in wanted if model in models]
        if found:
            app = by_label.get(label) or next(iter(apps))
            sections.append({**app, "name": name, "models": found})
    return sections + _others(apps, models)


def _others(apps: list[Any], left: dict[str, Any]) -> list[Any]:
    rest = [
        {**app, "models": [model for model in app["models"] if model["object_name"] in left]} for app in apps
    ]
    return [app for app in rest if app["models"]]
