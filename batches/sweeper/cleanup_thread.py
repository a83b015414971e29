"""The thread of the sweeper that removes what is no longer wanted: nothing that is due waits for a removal."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from django.db import connection

from batches.sweeper.cleanup import Cleanup
from relaybatch.db.isolation import run_isolated
from relaybatch.db.outage import DATABASE_UNAVAILABLE
from relaybatch.stop_signal import EXIT_MARGIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

CLEANUP_INTERVAL_SECONDS = 10.0
RUNS_PER_ORPHAN_SEARCH = 360
# Before the sweeper's process ends whatever it waits for.
JOIN_TIMEOUT_SECONDS = EXIT_MARGIN_SECONDS - 1


class CleanupThread:
    """Works while `may_work()`; two at the same moment do no harm. What it is cut off in begins again."""

    def __init__(self, *, may_work: Callable[[], bool]) -> None:
        self._may_work = may_work
        self._cleanup = Cleanup()
        self._runs = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, or leaves it to the end of the process when a removal takes long."""
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
            run_isolated("a turn of the housekeeper", self._run_once)
        except DATABASE_UNAVAILABLE as error:
            logger.warning("the housekeeper cannot reach the database: %s", type(error).__name__)
            connection.close()

    def _run_once(self) -> None:
        self._cleanup.run()
        if self._runs % RUNS_PER_ORPHAN_SEARCH == 0:
            self._cleanup.remove_orphaned_payloads()
        self._runs += 1
