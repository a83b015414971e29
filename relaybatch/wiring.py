"""Loads the Celery app with Django, so that tasks find it in every process."""

from __future__ import annotations

from django.apps import AppConfig


class WiringConfig(AppConfig):
    name = "relaybatch"
    label = "wiring"

    def ready(self) -> None:
        from relaybatch import celery  # noqa: F401 -- makes our app the current one
