"""The sweeper's cleanup thread: nothing that is due waits for a removal."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from django.db import connection

from batches.sweeper.cleanup import Cleanup
from batches.sweeper.orphaned_payloads import remove_orphaned_payloads, remove_orphaned_responses
from relaybatch.db.isolation import run_isolated
from relaybatch.db.outage import DATABASE_UNAVAILABLE
from relaybatch.stop_signal import EXIT_MARGIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

CLEANUP_INTERVAL_SECONDS = 10.0
RUNS_PER_ORPHAN_SEARCH = 360
# Less than the time after which the sweeper's process exits whatever it waits for.
JOIN_TIMEOUT_SECONDS = EXIT_MARGIN_SECONDS - 1


class CleanupThread:
    """Cleans up while `may_work()`. Two at the same moment do no harm, and an interrupted step begins again."""

    def __init__(self, *, may_work: Callable[[], bool]) -> None:
        self._may_work = may_work
        self._cleanup = Cleanup()
        self._runs = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cleanup", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one whose removal takes long ends with the process."""
        self._stop.set()
        self._thread.join(JOIN_TIMEOUT_SECONDS)

    def _run(self) -> None:
        while not self._stop.wait(1.0):
            if self._may_work():
                self._run_once_safely()
                self._stop.wait(CLEANUP_INTERVAL_SECONDS)
        connection.close()

    def _run_once_safely(self) -> None:
        try:
            run_isolated("cleanup", self._run_once)
        except DATABASE_UNAVAILABLE as error:
            logger.warning("database unavailable", extra={"reason": type(error).__name__})
            connection.close()

    def _run_once(self) -> None:
        self._cleanup.run()
        if self._runs % RUNS_PER_ORPHAN_SEARCH == 0:
            run_isolated("remove_orphaned_payloads", remove_orphaned_payloads)
            run_isolated("remove_orphaned_responses", remove_orphaned_responses)
        self._runs += 1
