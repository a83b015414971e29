"""Loads the Celery app with Django, so that tasks find it in every process; sessions; and our front for the admin."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.db.backends.signals import connection_created

from relaybatch.conf.database_url import configure_session


class WiringConfig(AppConfig):
    name = "relaybatch"
    label = "wiring"

    def ready(self) -> None:
        from relaybatch import celery  # noqa: F401 -- makes our app the current one

        connection_created.connect(configure_session)


class SiteConfig(AdminConfig):
    default_site = "relaybatch.admin.site.RelaybatchSite"
