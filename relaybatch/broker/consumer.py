"""The worker's consumer of messages. Only a worker loads it."""

from __future__ import annotations

import time

from celery.worker.consumer import Consumer

RECONNECT_PAUSE_SECONDS = 1.0


class ResilientConsumer(Consumer):
    """Connects anew at once no more often than it looks whether a broker is back.

    A Redis that takes no writes lets everybody connect, and refuses what comes next.
    """

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        super().on_connection_error_after_connected(exc)
        time.sleep(RECONNECT_PAUSE_SECONDS)
