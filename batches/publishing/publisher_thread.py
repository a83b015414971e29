"""One thread per process that publishes for owners who asked: requests within a moment become one statement."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from django.db import connection

from relaybatch.db.connection import lend_connection
from relaybatch.db.outage import AWAY

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

# So long that some settles share a statement, and so short that half a window lasts.
GATHER_SECONDS = 0.02
PAUSE_AFTER_FAILURE_SECONDS = 1.0


class Refiller:
    """The thread starts with the first request (so, after a fork) and ends with `rest`, or with its process."""

    def __init__(self, publish: Callable[[int], int]) -> None:
        self._publish = publish
        self._changed = threading.Condition()
        self._asked: set[int] = set()
        self._resting = False
        self._thread: threading.Thread | None = None

    def ask(self, owner_id: int) -> None:
        with self._changed:
            self._asked.add(owner_id)
            self._changed.notify()
            if self._thread is None or not self._thread.is_alive():  # not alive: after a fork, or an error
                self._resting = False
                self._thread = threading.Thread(target=self._run, name="refill", daemon=True)
                self._thread.start()

    def rest(self) -> None:
        """Publishes what was asked for, then ends the thread and its database connection."""
        with self._changed:
            thread, self._resting = self._thread, True
            self._changed.notify()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        try:
            while asked := self._take():
                for owner_id in asked:
                    self._publish_safely(owner_id)
                lend_connection()
                time.sleep(GATHER_SECONDS)
        finally:
            connection.close()

    def _take(self) -> set[int]:
        """What was asked for, waiting until there is something; nothing when it is time to rest."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self._resting)
            asked, self._asked = self._asked, set()
            if not asked:
                self._thread = None
        return asked

    def _publish_safely(self, owner_id: int) -> None:
        """What fails here is found again by the sweeper."""
        try:
            self._publish(owner_id)
        except AWAY:
            logger.warning("the database is away: the sweeper publishes when it is back")
            connection.close()
            time.sleep(PAUSE_AFTER_FAILURE_SECONDS)
