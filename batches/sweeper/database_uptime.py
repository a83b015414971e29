"""Whether workers could say that they are alive: not while the database is away, nor while it stands still."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable

# A worker's row is renewed six times in RELAY_WORKER_LOST_S: a shorter silence makes no live one look dead.
SILENCES_A_LOST_TIME = 2


class Sight:
    """Since when the database has answered without a break. An execute wrapper of Django's, to hear every answer.

    A server that is paused and goes on raises no error: its answers are only late.
    """

    def __init__(self) -> None:
        self._since = self._heard = time.monotonic()

    def __call__(self, execute: Callable[..., Any], *statement: Any) -> Any:
        answer = execute(*statement)
        self.hear()
        return answer

    def hear(self) -> None:
        now = time.monotonic()
        if now - self._heard > settings.RELAY_WORKER_LOST_S / SILENCES_A_LOST_TIME:
            self._since = now
        self._heard = now

    def lose(self) -> None:
        self._since = self._heard = time.monotonic()

    def is_long_enough(self) -> bool:
        """For declaring somebody dead by what the database has just answered."""
        self.hear()
        return self._heard - self._since >= settings.RELAY_WORKER_LOST_S
