"""A process that runs items."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from relaybatch.ids import uuid7


class WorkerQuerySet(models.QuerySet["Worker"]):
    def alive(self) -> WorkerQuerySet:
        return self.filter(seen_at__gte=Now() - timedelta(seconds=settings.RELAY_WORKER_LOST_S))

    def lost(self) -> WorkerQuerySet:
        return self.filter(seen_at__lt=Now() - timedelta(seconds=settings.RELAY_WORKER_LOST_S))


class Worker(models.Model):
    """A worker process, with a new id at each start. It is lost when `seen_at` is older than RELAY_WORKER_LOST_S."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    slots = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    objects = WorkerQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "id"]
        indexes = [models.Index(fields=["seen_at"], name="worker_seen")]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"
