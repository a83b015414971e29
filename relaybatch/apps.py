"""Django app configs of the wiring: the Celery app, the set-up of database sessions, and the admin site."""

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
