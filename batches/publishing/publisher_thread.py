"""One thread per process that fills the windows of owners: requests within a moment become one statement."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from django.db import connection

from relaybatch.db.connection import release_connection
from relaybatch.db.outage import DATABASE_UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

# Long enough that some settles share a statement, and short enough that half a window lasts.
COALESCE_SECONDS = 0.008
PAUSE_AFTER_FAILURE_SECONDS = 1.0


class PublisherThread:
    """The thread starts with the first request (so, after a fork) and ends with `drain`, or with its process."""

    def __init__(self, publish: Callable[[int], int]) -> None:
        self._publish = publish
        self._condition = threading.Condition()
        self._requested: set[int] = set()
        self._is_draining = False
        self._thread: threading.Thread | None = None

    def request(self, owner_id: int) -> None:
        with self._condition:
            self._requested.add(owner_id)
            self._condition.notify()
            if self._thread is None or not self._thread.is_alive():  # not alive: after a fork, or an error
                self._is_draining = False
                self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
                self._thread.start()

    def drain(self) -> None:
        """Publish what was requested, then end the thread and its database connection."""
        with self._condition:
            thread, self._is_draining = self._thread, True
            self._condition.notify()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        try:
            while owner_ids := self._take_requested():
                for owner_id in owner_ids:
                    self._publish_safely(owner_id)
                release_connection()
                time.sleep(COALESCE_SECONDS)
        finally:
            connection.close()

    def _take_requested(self) -> set[int]:
        """Wait for requests and take them; none when the thread is to end."""
        with self._condition:
            self._condition.wait_for(lambda: self._requested or self._is_draining)
            owner_ids, self._requested = self._requested, set()
            if not owner_ids:
                self._thread = None
        return owner_ids

    def _publish_safely(self, owner_id: int) -> None:
        # What fails here is published by the sweeper.
        try:
            self._publish(owner_id)
        except DATABASE_UNAVAILABLE as error:
            logger.warning("database unavailable", extra={"reason": type(error).__name__})
            connection.close()
            time.sleep(PAUSE_AFTER_FAILURE_SECONDS)
