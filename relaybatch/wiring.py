"""Loads the Celery app with Django, so that tasks find it in every process; sessions; and our front for the admin."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.contrib.admin import autodiscover
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks
from django.db.backends.signals import connection_created

from relaybatch.databases import let_go_of_locks


class WiringConfig(AppConfig):
    name = "relaybatch"
    label = "wiring"

    def ready(self) -> None:
        from relaybatch import celery  # noqa: F401 -- makes our app the current one

        connection_created.connect(let_go_of_locks)


class SiteConfig(SimpleAdminConfig):
    """The pages are loaded by the routes, and by `check`: workers start without them, in two thirds of the time."""

    default_site = "relaybatch.admin_site.RelaybatchSite"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_pages, checks.Tags.admin)


def _check_pages(app_configs: Any, **options: Any) -> list[Any]:
    autodiscover()
    return list(check_admin_app(app_configs, **options))
