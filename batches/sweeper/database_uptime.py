"""How long the database has answered without interruption. Heartbeats cannot be renewed during an outage."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable

# Heartbeats are sent six times in RELAY_WORKER_LOST_S: a gap shorter than half of it makes no live worker look lost.
GAPS_PER_LOST_TIMEOUT = 2


class DatabaseUptime:
    """Counts every answer of the database, as an execute wrapper of Django's. A gap between answers starts it anew.

    A server that is suspended and resumed raises no error: its answers are only late.
    """

    def __init__(self) -> None:
        self._since = self._last_success = time.monotonic()

    def __call__(self, execute: Callable[..., Any], *statement: Any) -> Any:
        result = execute(*statement)
        self.record_success()
        return result

    def record_success(self) -> None:
        now = time.monotonic()
        if now - self._last_success > settings.RELAY_WORKER_LOST_S / GAPS_PER_LOST_TIMEOUT:
            self._since = now
        self._last_success = now

    def reset(self) -> None:
        self._since = self._last_success = time.monotonic()

    def covers_lost_timeout(self) -> bool:
        """Whether a worker may be declared lost by what the database has just answered: it has been up for
        RELAY_WORKER_LOST_S."""
        self.record_success()
        return self._last_success - self._since >= settings.RELAY_WORKER_LOST_S
