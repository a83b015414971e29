"""Django's connection of a thread, which shares with the process's other threads what it does not use."""

from __future__ import annotations

import re
import time
from typing import Any

from django.db.backends.postgresql import base
from psycopg import OperationalError
from psycopg.pq import TransactionStatus

from relaybatch.db.connection import SPARE

# A connection that is given back, here or by another process, is seen within that time.
WAIT_FOR_ROOM_SECONDS = 2.0
KNOCK_SECONDS = 0.2
# PostgreSQL's 53300 and what poolers say. psycopg has no code for what ends a connection before it is one.
_FULL = re.compile("too many|connection slots|no more connections|max clients", re.IGNORECASE)


class DatabaseWrapper(base.DatabaseWrapper):
    """`lend` gives the connection to whoever needs one; the next statement takes one of them, or connects."""

    def connect(self) -> None:
        """Waits a moment for a server that has no room, and for another thread of this process to lend its own."""
        give_up_at = time.monotonic() + WAIT_FOR_ROOM_SECONDS
        while not self._take_spare():
            is_last_try = time.monotonic() >= give_up_at
            if (SPARE.may_open() or is_last_try) and self._connected(is_last_try=is_last_try):
                return
            SPARE.wait(seconds=KNOCK_SECONDS)

    def _connected(self, *, is_last_try: bool) -> bool:
        try:
            super().connect()
        except OperationalError as error:
            if not is_full(error):
                raise
            SPARE.refused()
            if is_last_try:
                raise
            return False
        SPARE.opened(self.connection)
        return True

    def lend(self) -> None:
        """Keeps it within a transaction, and after an error, which must be looked at first."""
        raw = self.connection
        if raw is None or self.in_atomic_block or not self.autocommit or self.errors_occurred:
            return
        if raw.pgconn.transaction_status == TransactionStatus.IDLE:
            self.connection = None
            SPARE.put(raw, database=self.settings_dict["NAME"], checked=self.health_check_done)

    def close_if_unusable_or_obsolete(self) -> None:
        """Django's call before and after each request."""
        super().close_if_unusable_or_obsolete()
        self.lend()

    def _close(self) -> None:
        """What made one useless (a failover, a cut) has met the others as well."""
        SPARE.close_all()
        super()._close()  # type: ignore[misc]  # the stubs leave it out

    def _take_spare(self) -> bool:
        while spare := SPARE.take(database=self.settings_dict["NAME"]):
            self._go_on_with(spare.raw)
            if spare.checked or self.is_usable():
                return True
            self.connection = None
            spare.raw.close()
        return False

    def _go_on_with(self, raw: Any) -> None:
        """As Django's `connect` leaves it, without what is asked of a new session: this one is set up."""
        self.in_atomic_block = False
        self.savepoint_ids = []
        self.atomic_blocks = []
        self.needs_rollback = False
        self.health_check_enabled = self.settings_dict["CONN_HEALTH_CHECKS"]
        self.health_check_done = True
        self.close_at = None
        self.closed_in_transaction = False
        self.errors_occurred = False
        self.connection = raw
        self.autocommit = True
        self.run_on_commit = []


def is_full(error: OperationalError) -> bool:
    """Whether a server refused a connection for want of room. Read from English words: that is all there is."""
    return _FULL.search(str(error)) is not None
