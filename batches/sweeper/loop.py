"""The sweeper's loop. Any number of sweepers may run: an advisory lock lets one of them work."""

from __future__ import annotations

import logging
import time

from django.conf import settings
from django.db import connection

from batches.publishing.publish import publish_all_due, publish_lost
from batches.sweeper.cleanup_thread import Housekeeper
from batches.sweeper.database_uptime import Sight
from batches.sweeper.sweep import expire_overdue, seconds_to_next_due, take_from_dead_workers
from relaybatch.db.isolation import attempt
from relaybatch.db.outage import AWAY
from relaybatch.stop_signal import StopSignal

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 2.0
# A due time is met at most this late: the look for the next one is a probe of a small index.
LOOK_SECONDS = 0.2
# Any constant of our own; pg_locks shows it.
LOCK = 0x7E1A_BA7C
_END_WHEN_SILENT = "SELECT set_config('idle_session_timeout', %s, false)"


class Sweeper:
    """`stop()` from another thread or a signal handler ends `run()` within a moment."""

    def __init__(self) -> None:
        self.told_to_end = StopSignal()
        self._locked = False
        self._sight = Sight()
        self._next_sweep = 0.0
        self._housekeeper = Housekeeper(may_work=lambda: self._locked)

    def stop(self) -> None:
        self.told_to_end.set()

    def run(self) -> None:
        self._housekeeper.start()
        with connection.execute_wrapper(self._sight):
            while not self.told_to_end.wait(LOOK_SECONDS):
                self._try_turn()
        self._housekeeper.stop()
        connection.close()

    def _try_turn(self) -> None:
        try:
            if not attempt("a turn of the sweeper", self._turn):
                self.told_to_end.wait(SWEEP_SECONDS)
        except AWAY as error:
            logger.warning("the sweeper cannot reach the database: %s", type(error).__name__)
            connection.close()
            self._locked = False
            self._sight.lose()

    def _turn(self) -> None:
        if not self._hold_lock():
            self.told_to_end.wait(SWEEP_SECONDS)
        elif time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + SWEEP_SECONDS
            self._sweep()
        elif (seconds_to_next_due() or 1.0) <= 0 and not publish_all_due():
            self.told_to_end.wait(SWEEP_SECONDS)

    def _sweep(self) -> None:
        """Overdue batches, items of dead workers, lost messages, due items."""
        attempt("expiry", expire_overdue)
        attempt("the care for dead workers", self._take_from_dead_workers)
        attempt("publishing again", publish_lost)
        attempt("publishing", publish_all_due)

    def _take_from_dead_workers(self) -> None:
        take_from_dead_workers(may_declare_dead=self._sight.is_long_enough)

    def _hold_lock(self) -> bool:
        """The lock is the session's: a connection that breaks gives it up, and another sweeper goes on.

        A sweeper that hangs is silent, so the server ends its session as soon as it would count as lost.
        """
        if not self._locked:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
                self._locked = bool(cursor.fetchone()[0])
                if self._locked:
                    cursor.execute(_END_WHEN_SILENT, [f"{settings.RELAY_WORKER_LOST_S}s"])
        return self._locked
