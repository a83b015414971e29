"""The sweeper's loop. Any number of sweepers may run: an advisory lock lets one of them work."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection

from batches.file_batches.finalize import finalize_batch
from batches.file_batches.pending import PendingBatches
from batches.file_batches.validate import validate_batch
from batches.models import Batch
from batches.publishing.lost_messages import publish_lost
from batches.publishing.publish import publish_all_due
from batches.sweeper.background_thread import BackgroundThread
from batches.sweeper.cleanup import Cleanup
from batches.sweeper.database_uptime import DatabaseUptime
from batches.sweeper.orphaned_payloads import remove_orphans
from batches.sweeper.sweep import expire_overdue, read_backlog, reclaim_lost_items
from relaybatch.db.isolation import run_isolated
from relaybatch.db.outage import DATABASE_UNAVAILABLE
from relaybatch.stop_signal import EXIT_MARGIN_SECONDS, StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

SWEEP_INTERVAL_SECONDS = 2.0
CLEANUP_INTERVAL_SECONDS = 10.0
ORPHAN_SEARCH_INTERVAL_SECONDS = 3600.0
# Less than the time after which the process exits whatever it waits for.
JOIN_TIMEOUT_SECONDS = EXIT_MARGIN_SECONDS - 1
# A due time is met at most this late: polling for the next one is a probe of a small index.
POLL_INTERVAL_SECONDS = 0.2
# Any constant of our own; pg_locks shows it.
SWEEPER_LOCK = 0x7E1A_BA7C
_SET_IDLE_SESSION_TIMEOUT = "SELECT set_config('idle_session_timeout', %s, false)"


class Sweeper:
    """`stop()` from another thread or a signal handler ends `run()` within a moment."""

    def __init__(self) -> None:
        self.stop_requested = StopSignal()
        self._has_lock = False
        self._uptime = DatabaseUptime()
        self._next_sweep = 0.0
        validation = PendingBatches("validate_batch", Batch.objects.validating, validate_batch)
        finalizing = PendingBatches("finalize_batch", Batch.objects.finalizing, finalize_batch)
        self._validation = self._thread("validation", partial(validation.run, may_go_on=self._may_work))
        self._finalizing = self._thread("finalizing", partial(finalizing.run, may_go_on=self._may_work))
        self._threads = (
            self._validation,
            self._finalizing,
            self._thread("cleanup", Cleanup().run, interval_seconds=CLEANUP_INTERVAL_SECONDS),
            self._thread("remove_orphans", remove_orphans, interval_seconds=ORPHAN_SEARCH_INTERVAL_SECONDS),
        )

    def stop(self) -> None:
        self.stop_requested.set()

    def run(self) -> None:
        for thread in self._threads:
            thread.start()
        with connection.execute_wrapper(self._uptime):
            while not self.stop_requested.wait(POLL_INTERVAL_SECONDS):
                self._run_once_safely()
        self._stop_threads()
        connection.close()

    def _run_once_safely(self) -> None:
        try:
            if not run_isolated("sweep", self._run_once):
                self.stop_requested.wait(SWEEP_INTERVAL_SECONDS)
        except DATABASE_UNAVAILABLE as error:
            logger.warning("database unavailable", extra={"reason": type(error).__name__})
            connection.close()
            self._has_lock = False
            self._uptime.reset()

    def _run_once(self) -> None:
        if not self._acquire_lock():
            self.stop_requested.wait(SWEEP_INTERVAL_SECONDS)
            return
        backlog = read_backlog()
        if backlog.has_validating:
            self._validation.wake()
        if backlog.has_finalizing:
            self._finalizing.wake()
        if backlog.has_open_batches and time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + SWEEP_INTERVAL_SECONDS
            self._sweep()
        elif backlog.is_due and not publish_all_due():
            self.stop_requested.wait(SWEEP_INTERVAL_SECONDS)

    def _may_work(self) -> bool:
        return self._has_lock and not self.stop_requested.is_set()

    def _thread(
        self, name: str, work: Callable[[], None], *, interval_seconds: float | None = None
    ) -> BackgroundThread:
        return BackgroundThread(name, work, may_work=self._may_work, interval_seconds=interval_seconds)

    def _stop_threads(self) -> None:
        for thread in self._threads:
            thread.begin_shutdown()
        deadline = time.monotonic() + JOIN_TIMEOUT_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _wake_threads(self) -> None:
        for thread in self._threads:
            thread.wake()

    def _sweep(self) -> None:
        run_isolated("expire_overdue", expire_overdue)
        run_isolated("reclaim_lost_items", self._reclaim_lost_items)
        run_isolated("publish_lost", publish_lost)
        run_isolated("publish_due", publish_all_due)

    def _reclaim_lost_items(self) -> None:
        reclaim_lost_items(may_declare_lost=self._uptime.covers_lost_timeout)

    def _acquire_lock(self) -> bool:
        """True when this sweeper holds the lock; tries to take it otherwise.

        The lock is the session's: a connection that breaks releases it, and another sweeper goes on. A sweeper that
        hangs sends nothing, so the server ends its session after RELAY_WORKER_LOST_S.
        """
        if not self._has_lock:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(%s)", [SWEEPER_LOCK])
                self._has_lock = bool(cursor.fetchone()[0])
                if self._has_lock:
                    cursor.execute(_SET_IDLE_SESSION_TIMEOUT, [f"{settings.RELAY_WORKER_LOST_S}s"])
            if self._has_lock:
                self._wake_threads()
        return self._has_lock
