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

from batches.execution.claim import own_claims
from batches.execution.in_flight import RunningItems
from batches.execution.settle_fallbacks import settle_with_fallbacks
from relaybatch.db.connection import lend_connection
from relaybatch.db.isolation import attempt
from relaybatch.db.outage import AWAY, stop_waiting
from relaybatch.ids import uuid7
from routing.gate.liveness import presence
from routing.transport.idle_connections import IDLE

if TYPE_CHECKING:
    import uuid

logger = logging.getLogger(__name__)

# A cancel is promised to stop running items within two seconds.
LOOK_SECONDS = 0.5
BEATS_A_LOST_TIME = 6
FORGOTTEN_SECONDS = 10.0

# An upsert: a process that was declared dead and woke up again is alive again.
_BEAT = """
INSERT INTO batches_worker (id, host, pid, slots, started_at, seen_at)
VALUES (%s, %s, %s, %s, clock_timestamp(), clock_timestamp())
ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at
"""
_CANCELLED = """
SELECT i.id FROM batches_batchitem i JOIN batches_batch b ON b.id = i.batch_id
WHERE i.id = ANY(%s) AND i.state = 'running' AND i.worker_id = %s AND b.cancel_initiated_at IS NOT NULL
"""
_LEAVE = "DELETE FROM batches_worker WHERE id = %s"


class Watch:
    """Twice a second: cuts what is past its deadline, cancelled, or still running after the shutdown grace.

    Six times in RELAY_WORKER_LOST_S it renews the worker row, and the process's presence in Redis. A database that
    refuses stops neither deadlines nor the grace nor the presence; one that hangs holds up the looks until its
    time-out, while each call's own deadline goes on.
    """

    def __init__(self, *, slots: int) -> None:
        self.items = RunningItems(uuid7())
        self._slots = slots
        self._stop = threading.Event()
        self._grace_ends: float | None = None
        self._next_beat = 0.0
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Returns when the worker row exists, so that no item is claimed under a row that isn't there."""
        self._beat()
        self._thread.start()

    def take_nothing_new(self) -> None:
        """From now on running items have RELAY_SHUTDOWN_GRACE_S left. Safe to call twice."""
        self.items.stopping = True
        if self._grace_ends is None:
            self._grace_ends = time.monotonic() + settings.RELAY_SHUTDOWN_GRACE_S

    def leave(self) -> None:
        """Ends the thread and removes the worker row: nothing runs any more."""
        self._stop.set()
        self._thread.join(timeout=LOOK_SECONDS * 5)
        with connection.cursor() as cursor:
            cursor.execute(_LEAVE, [self.items.worker_id])

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self._look()
            except Exception:
                # Without this thread a process that works well would count as lost.
                logger.exception("a look of the watch broke off")
            lend_connection()
        connection.close()

    def _look(self) -> None:
        self.items.cut_overdue()
        IDLE.close_aged()
        if self._grace_ends is not None and time.monotonic() >= self._grace_ends:
            self.items.cut_all("worker_stopped")
            stop_waiting()
        try:
            presence.beat()
        finally:
            # Whatever is wrong with the beat, the row is renewed: else this process would count as lost.
            self._look_at_rows()

    def _look_at_rows(self) -> None:
        try:
            if time.monotonic() >= self._next_beat:
                self._beat()
                self._settle_forgotten()
            self.items.cut(self._cancelled(), "cancelled")
        except AWAY as error:
            logger.warning("the watch cannot reach the database: %s", type(error).__name__)
            connection.close()

    def _beat(self) -> None:
        row: list[Any] = [self.items.worker_id, socket.gethostname(), os.getpid(), self._slots]
        with connection.cursor() as cursor:
            cursor.execute(_BEAT, row)
        self._next_beat = time.monotonic() + settings.RELAY_WORKER_LOST_S / BEATS_A_LOST_TIME

    def _settle_forgotten(self) -> None:
        """Rows that say that this process runs them, while no slot of it does: nobody else would ever take them."""
        claims = own_claims(worker_id=self.items.worker_id, older_than_seconds=FORGOTTEN_SECONDS)
        handled = self.items.handled()
        for claim in claims:
            if claim.item_id not in handled:
                logger.error("an item was forgotten while running", extra=claim.log_ids)
                attempt(
                    "the care for a forgotten item", partial(settle_with_fallbacks, claim), **claim.log_ids
                )

    def _cancelled(self) -> set[uuid.UUID]:
        running = [item.claim.item_id for item in self.items.now()]
        if not running:
            return set()
        with connection.cursor() as cursor:
            cursor.execute(_CANCELLED, [running, self.items.worker_id])
            return {row[0] for row in cursor.fetchall()}
