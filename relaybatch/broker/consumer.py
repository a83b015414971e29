"""The worker's message consumer. Only a worker process imports it."""

from __future__ import annotations

import time

from celery.worker.consumer import Consumer

RECONNECT_PAUSE_SECONDS = 1.0


class ResilientConsumer(Consumer):
    """Pause before a reconnect.

    A Redis that takes no writes accepts connections and rejects the next command: without a pause the worker would
    reconnect in a busy loop.
    """

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        super().on_connection_error_after_connected(exc)
        time.sleep(RECONNECT_PAUSE_SECONDS)
