"""A thread of the sweeper's process: nothing that is due waits for slow work."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from django.db import connection

from relaybatch.db.connection import release_connection
from relaybatch.db.isolation import run_isolated
from relaybatch.db.outage import DATABASE_UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


class BackgroundThread:
    """Runs `work` whenever it is woken, and every `interval_seconds` if given, while `may_work()`.

    Two processes at the same moment do no harm, and work that was interrupted begins again.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], None],
        *,
        may_work: Callable[[], bool],
        interval_seconds: float | None = None,
    ) -> None:
        self._name = name
        self._work = work
        self._may_work = may_work
        self._interval_seconds = interval_seconds
        self._wake = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def begin_shutdown(self) -> None:
        self._is_stopping = True
        self._wake.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread; one whose step takes long ends with the process."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._is_stopping:
            self._wake.wait(self._interval_seconds)
            self._wake.clear()
            if self._may_work() and not self._is_stopping:
                self._work_safely()
                release_connection()
        connection.close()

    def _work_safely(self) -> None:
        try:
            run_isolated(self._name, self._work)
        except DATABASE_UNAVAILABLE as error:
            logger.warning("database unavailable", extra={"reason": type(error).__name__})
            connection.close()
