"""Django's connection of a thread, which shares with the process's other threads what it does not use."""

from __future__ import annotations

import re
import time
from typing import Any

from django.db.backends.postgresql import base
from psycopg import OperationalError
from psycopg.pq import TransactionStatus

from relaybatch.db.connection import POOL

# A connection that is given back, here or by another process, is seen within that time.
SERVER_FULL_WAIT_SECONDS = 2.0
RETRY_INTERVAL_SECONDS = 0.2
# PostgreSQL's 53300 and what poolers say. psycopg has no code for what ends a connection before it is one.
_SERVER_FULL = re.compile("too many|connection slots|no more connections|max clients", re.IGNORECASE)


class DatabaseWrapper(base.DatabaseWrapper):
    """`release_to_pool` gives the connection to whoever needs one; the next statement takes one of them, or connects."""

    def connect(self) -> None:
        """Waits a moment for a server that has no room, and for another thread of this process to lend its own."""
        give_up_at = time.monotonic() + SERVER_FULL_WAIT_SECONDS
        while not self._reuse_idle():
            is_last_try = time.monotonic() >= give_up_at
            if (POOL.may_open() or is_last_try) and self._try_connect(is_last_try=is_last_try):
                return
            POOL.wait_for_idle(seconds=RETRY_INTERVAL_SECONDS)

    def _try_connect(self, *, is_last_try: bool) -> bool:
        try:
            super().connect()
        except OperationalError as error:
            if not is_server_full(error):
                raise
            POOL.record_server_full()
            if is_last_try:
                raise
            return False
        POOL.record_opened(self.connection)
        return True

    def release_to_pool(self) -> None:
        """Keeps it within a transaction, and after an error, which must be looked at first."""
        raw = self.connection
        if raw is None or self.in_atomic_block or not self.autocommit or self.errors_occurred:
            return
        if raw.pgconn.transaction_status == TransactionStatus.IDLE:
            self.connection = None
            POOL.release(raw, database=self.settings_dict["NAME"], is_checked=self.health_check_done)

    def close_if_unusable_or_obsolete(self) -> None:
        """Django's call before and after each request."""
        super().close_if_unusable_or_obsolete()
        self.release_to_pool()

    def _close(self) -> None:
        """What made one useless (a failover, a cut) has met the others as well."""
        POOL.close_all()
        super()._close()  # type: ignore[misc]  # the stubs leave it out

    def _reuse_idle(self) -> bool:
        while spare := POOL.acquire(database=self.settings_dict["NAME"]):
            self._adopt(spare.raw)
            if spare.is_checked or self.is_usable():
                return True
            self.connection = None
            spare.raw.close()
        return False

    def _adopt(self, raw: Any) -> None:
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


def is_server_full(error: OperationalError) -> bool:
    """Whether a server refused a connection for want of room. Read from English words: that is all there is."""
    return _SERVER_FULL.search(str(error)) is not None
