"""The group whose members may view everything in the admin but secrets, payloads and logins, and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps as installed_apps

if TYPE_CHECKING:
    from django.apps.registry import Apps

GROUP_NAME = "Relaybatch viewers"
VIEWABLE_MODELS = {
    "batches": ("batch", "batchitem", "file", "worker"),
    "usage": ("usageevent",),
    "routing": (
        *("team", "project", "serviceaccount", "relaykey"),
        *("provider", "host", "hostheader", "hostkey", "model", "alias", "binding", "pricing", "rate"),
        *("policy", "policyhostkey", "ratelimit", "ratelimitrule"),
    ),
}


def create_viewer_group(*, using: str, apps: Apps = installed_apps, **_: Any) -> None:
    """Create the group after the first migration, once: an operator's later changes to it stay."""
    try:
        group_model = apps.get_model("auth", "Group")
        permission_model = apps.get_model("auth", "Permission")
    except LookupError:  # its tables are being removed
        return
    group, created = group_model._default_manager.using(using).get_or_create(name=GROUP_NAME)
    if created:
        permissions = permission_model._default_manager.using(using)
        for app_label, models in VIEWABLE_MODELS.items():
            codenames = [f"view_{model}" for model in models]
            found = permissions.filter(content_type__app_label=app_label, codename__in=codenames)
            group.permissions.add(*found)
