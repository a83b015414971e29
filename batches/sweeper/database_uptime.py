"""Whether workers could say that they are alive: not while the database is away, nor while it stands still."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable

# A worker's row is renewed six times in RELAY_WORKER_LOST_S: a shorter silence makes no live one look dead.
GAPS_PER_LOST_TIMEOUT = 2


class DatabaseUptime:
    """Since when the database has answered without a break. An execute wrapper of Django's, to hear every answer.

    A server that is paused and goes on raises no error: its answers are only late.
    """

    def __init__(self) -> None:
        self._since = self._last_success = time.monotonic()

    def __call__(self, execute: Callable[..., Any], *statement: Any) -> Any:
        answer = execute(*statement)
        self.record_success()
        return answer

    def record_success(self) -> None:
        now = time.monotonic()
        if now - self._last_success > settings.RELAY_WORKER_LOST_S / GAPS_PER_LOST_TIMEOUT:
            self._since = now
        self._last_success = now

    def reset(self) -> None:
        self._since = self._last_success = time.monotonic()

    def covers_lost_timeout(self) -> bool:
        """For declaring somebody dead by what the database has just answered."""
        self.record_success()
        return self._last_success - self._since >= settings.RELAY_WORKER_LOST_S
