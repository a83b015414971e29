"""The one thread of a worker process that sends its heartbeat and aborts calls that must end."""

from __future__ import annotations

import logging
import threading
import time

from django.conf import settings
from django.db import connection

from batches.execution.abort_cancelled import abort_cancelled_items
from batches.execution.heartbeat import HEARTBEATS_PER_LOST_TIMEOUT, delete_worker, send_heartbeat
from batches.execution.in_flight import InFlightItems
from batches.execution.orphans import settle_orphans
from relaybatch.db.connection import release_connection
from relaybatch.db.outage import DATABASE_UNAVAILABLE, stop_retrying
from relaybatch.ids import uuid7
from routing.calls.failures import FailureCode
from routing.gate.liveness import liveness
from routing.transport.idle_connections import IDLE_CONNECTIONS

logger = logging.getLogger(__name__)

# A cancel is promised to stop running items within two seconds.
POLL_INTERVAL_SECONDS = 0.5


class WorkerMonitor:
    """Twice a second, abort the calls past their deadline, of cancelled batches, or past the shutdown grace.

    Six times in RELAY_WORKER_LOST_S, send the heartbeat: the worker row's, and the process's liveness in Redis. A
    database that answers with errors stops neither deadlines nor the grace nor the liveness; one that hangs delays the
    polls until its time-out, while each call's own deadline goes on.
    """

    def __init__(self, *, slots: int) -> None:
        self.items = InFlightItems(uuid7(), slots=slots)
        self._slots = slots
        self._stop = threading.Event()
        self._grace_deadline: float | None = None
        self._next_heartbeat = 0.0
        self._thread = threading.Thread(target=self._run, name="worker-monitor", daemon=True)

    def start(self) -> None:
        """Return when the worker row exists, so that no item is claimed under a row that is missing."""
        self._heartbeat()
        self._thread.start()

    def begin_shutdown(self) -> None:
        """Claim nothing new, and give running items RELAY_SHUTDOWN_GRACE_S from now. Safe to call twice."""
        self.items.stop()
        if self._grace_deadline is None:
            self._grace_deadline = time.monotonic() + settings.RELAY_SHUTDOWN_GRACE_S

    def deregister(self) -> None:
        """End the thread and delete the worker row, when nothing runs any more."""
        self._stop.set()
        self._thread.join(timeout=POLL_INTERVAL_SECONDS * 5)
        delete_worker(self.items.worker_id)

    def _run(self) -> None:
        while not self._stop.wait(POLL_INTERVAL_SECONDS):
            try:
                self._poll()
            except Exception:
                # Without this thread a process that works well would count as lost.
                logger.exception("worker monitor poll failed")
            release_connection()
        connection.close()

    def _poll(self) -> None:
        self.items.abort_overdue()
        IDLE_CONNECTIONS.close_expired()
        if self._grace_deadline is not None and time.monotonic() >= self._grace_deadline:
            self.items.abort_all(FailureCode.WORKER_LOST)
            stop_retrying()
        try:
            liveness.heartbeat()
        finally:
            # Whatever is wrong with Redis, the row is renewed: else this process would count as lost.
            self._poll_database()

    def _poll_database(self) -> None:
        try:
            if time.monotonic() >= self._next_heartbeat:
                self._heartbeat()
                settle_orphans(self.items)
            abort_cancelled_items(self.items)
        except DATABASE_UNAVAILABLE as error:
            logger.warning("database unavailable", extra={"reason": type(error).__name__})
            connection.close()

    def _heartbeat(self) -> None:
        send_heartbeat(self.items.worker_id, slots=self._slots)
        self._next_heartbeat = time.monotonic() + settings.RELAY_WORKER_LOST_S / HEARTBEATS_PER_LOST_TIMEOUT
