"""The worker row of this process, and the one thread that watches over its running items."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection

from batches.execution.claim import claims_held_by
from batches.execution.in_flight import InFlightItems
from batches.execution.settle_fallbacks import settle_with_fallbacks
from relaybatch.db.connection import release_connection
from relaybatch.db.isolation import run_isolated
from relaybatch.db.outage import DATABASE_UNAVAILABLE, stop_retrying
from relaybatch.ids import uuid7
from routing.gate.liveness import liveness
from routing.transport.idle_connections import IDLE_CONNECTIONS

if TYPE_CHECKING:
    import uuid

logger = logging.getLogger(__name__)

# A cancel is promised to stop running items within two seconds.
POLL_INTERVAL_SECONDS = 0.5
HEARTBEATS_PER_LOST_TIMEOUT = 6
MIN_ORPHAN_AGE_SECONDS = 10.0

# An upsert: a process that was declared dead and woke up again is alive again.
_HEARTBEAT = """
INSERT INTO batches_worker (id, host, pid, slots, started_at, seen_at)
VALUES (%s, %s, %s, %s, clock_timestamp(), clock_timestamp())
ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at
"""
_CANCELLED = """
SELECT i.id FROM batches_batchitem i JOIN batches_batch b ON b.id = i.batch_id
WHERE i.id = ANY(%s) AND i.state = 'running' AND i.worker_id = %s AND b.cancel_initiated_at IS NOT NULL
"""
_DEREGISTER = "DELETE FROM batches_worker WHERE id = %s"


class WorkerMonitor:
    """Twice a second: cuts what is past its deadline, cancelled, or still running after the shutdown grace.

    Six times in RELAY_WORKER_LOST_S it renews the worker row, and the process's presence in Redis. A database that
    refuses stops neither deadlines nor the grace nor the presence; one that hangs holds up the looks until its
    time-out, while each call's own deadline goes on.
    """

    def __init__(self, *, slots: int) -> None:
        self.items = InFlightItems(uuid7())
        self._slots = slots
        self._stop = threading.Event()
        self._grace_deadline: float | None = None
        self._next_heartbeat = 0.0
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Returns when the worker row exists, so that no item is claimed under a row that isn't there."""
        self._heartbeat()
        self._thread.start()

    def begin_shutdown(self) -> None:
        """From now on running items have RELAY_SHUTDOWN_GRACE_S left. Safe to call twice."""
        self.items.is_stopping = True
        if self._grace_deadline is None:
            self._grace_deadline = time.monotonic() + settings.RELAY_SHUTDOWN_GRACE_S

    def deregister(self) -> None:
        """Ends the thread and removes the worker row: nothing runs any more."""
        self._stop.set()
        self._thread.join(timeout=POLL_INTERVAL_SECONDS * 5)
        with connection.cursor() as cursor:
            cursor.execute(_DEREGISTER, [self.items.worker_id])

    def _run(self) -> None:
        while not self._stop.wait(POLL_INTERVAL_SECONDS):
            try:
                self._poll()
            except Exception:
                # Without this thread a process that works well would count as lost.
                logger.exception("a look of the watch broke off")
            release_connection()
        connection.close()

    def _poll(self) -> None:
        self.items.abort_overdue()
        IDLE_CONNECTIONS.close_expired()
        if self._grace_deadline is not None and time.monotonic() >= self._grace_deadline:
            self.items.abort_all("worker_stopped")
            stop_retrying()
        try:
            liveness.heartbeat()
        finally:
            # Whatever is wrong with the beat, the row is renewed: else this process would count as lost.
            self._poll_database()

    def _poll_database(self) -> None:
        try:
            if time.monotonic() >= self._next_heartbeat:
                self._heartbeat()
                self._settle_orphans()
            self.items.abort(self._cancelled_item_ids(), "cancelled")
        except DATABASE_UNAVAILABLE as error:
            logger.warning("the watch cannot reach the database: %s", type(error).__name__)
            connection.close()

    def _heartbeat(self) -> None:
        row: list[Any] = [self.items.worker_id, socket.gethostname(), os.getpid(), self._slots]
        with connection.cursor() as cursor:
            cursor.execute(_HEARTBEAT, row)
        self._next_heartbeat = time.monotonic() + settings.RELAY_WORKER_LOST_S / HEARTBEATS_PER_LOST_TIMEOUT

    def _settle_orphans(self) -> None:
        """Rows that say that this process runs them, while no slot of it does: nobody else would ever take them."""
        claims = claims_held_by(worker_id=self.items.worker_id, older_than_seconds=MIN_ORPHAN_AGE_SECONDS)
        reserved = self.items.reserved()
        for claim in claims:
            if claim.item_id not in reserved:
                logger.error("an item was forgotten while running", extra=claim.log_fields)
                run_isolated(
                    "the care for a forgotten item", partial(settle_with_fallbacks, claim), **claim.log_fields
                )

    def _cancelled_item_ids(self) -> set[uuid.UUID]:
        running = [item.claim.item_id for item in self.items.tracked()]
        if not running:
            return set()
        with connection.cursor() as cursor:
            cursor.execute(_CANCELLED, [running, self.items.worker_id])
            return {row[0] for row in cursor.fetchall()}
