"""The worker's message consumer. Only a worker process imports it."""

from __future__ import annotations

import time
from typing import Any

from celery.worker.consumer import Consumer

RECONNECT_PAUSE_SECONDS = 1.0


class ResilientConsumer(Consumer):
    """Pause before a reconnect.

    A Redis that takes no writes accepts connections and rejects the next command: without a pause the worker would
    reconnect in a busy loop.

    Of unacknowledged messages it holds as many as there are threads. Celery would go by the worker's concurrency.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial_prefetch_count = self.pool.num_processes

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        super().on_connection_error_after_connected(exc)
        time.sleep(RECONNECT_PAUSE_SECONDS)
