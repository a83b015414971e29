"""The sweeper's loop. Any number of sweepers may run: an advisory lock lets one of them work."""

from __future__ import annotations

import logging
import threading
import time

from django.conf import settings
from django.db import connection

from batches.housekeeping import remove_orphaned_payloads, tidy
from batches.patience import AWAY
from batches.publish import publish_all_due
from batches.sweep import seconds_to_next_due, sweep

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 2.0
# A due time is met at most this late: the look for the next one is a probe of a small index.
LOOK_SECONDS = 0.2
TIDY_SECONDS = 10.0
ORPHAN_SECONDS = 3600.0
# Any constant of our own; pg_locks shows it.
LOCK = 0x7E1A_BA7C
_END_WHEN_SILENT = "SELECT set_config('idle_session_timeout', %s, false)"


class Sweeper:
    """`stop()` from another thread or a signal handler ends `run()` within a moment."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._locked = False
        # Since when the database has answered without a break: workers could not renew their rows before.
        self._seen_since = time.monotonic()
        self._next: dict[str, float] = {}

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self._turn()
            except AWAY as error:
                logger.warning("the sweeper cannot reach the database: %s", type(error).__name__)
                self._after_outage()
            except Exception:
                # Whatever is wrong with one chore, publishing and the care for dead workers must go on.
                logger.exception("a sweep broke off")
                self._after_outage()
                self._stop.wait(SWEEP_SECONDS)
        connection.close()

    def _turn(self) -> None:
        if not self._hold_lock():
            self._stop.wait(SWEEP_SECONDS)
            return
        if self._is_time("sweep", SWEEP_SECONDS):
            sweep(may_declare_dead=self._may_declare_dead())
        elif (seconds_to_next_due() or 1.0) <= 0:
            publish_all_due()
        if self._is_time("tidy", TIDY_SECONDS):
            tidy()
        if self._is_time("orphans", ORPHAN_SECONDS):
            remove_orphaned_payloads()

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

    def _may_declare_dead(self) -> bool:
        return time.monotonic() - self._seen_since >= settings.RELAY_WORKER_LOST_S

    def _after_outage(self) -> None:
        connection.close()
        self._locked = False
        self._seen_since = time.monotonic()

    def _is_time(self, chore: str, seconds: float) -> bool:
        now = time.monotonic()
        if now < self._next.get(chore, 0.0):
            return False
        self._next[chore] = now + seconds
        return True
