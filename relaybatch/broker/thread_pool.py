"""The threads of a worker process, on which Celery runs its tasks."""

from __future__ import annotations

from typing import Any

from celery.concurrency.thread import TaskPool
from django.conf import settings

from batches.execution.call_slots import threads_for


class ItemThreadPool(TaskPool):
    """More threads than the worker's concurrency, which limits the upstream calls alone (call_slots.py)."""

    def __init__(self, limit: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(threads_for(max(limit, settings.RELAY_BATCH_CONCURRENCY)), *args, **kwargs)
