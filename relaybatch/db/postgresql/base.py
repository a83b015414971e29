"""Django's database backend for PostgreSQL with a connection pool that the threads of a process share."""

from __future__ import annotations

import re
import time
from typing import Any

from django.db.backends.postgresql import base
from psycopg import OperationalError
from psycopg.pq import TransactionStatus

from relaybatch.db.connection import POOL

# How long to wait for a connection while the server has too many. A released one, here or in another process, is
# found within the retry interval.
SERVER_FULL_WAIT_SECONDS = 2.0
RETRY_INTERVAL_SECONDS = 0.2
# Messages of PostgreSQL's 53300 and of poolers. psycopg has no SQLSTATE for an error while connecting.
_SERVER_FULL = re.compile("too many|connection slots|no more connections|max clients", re.IGNORECASE)


class DatabaseWrapper(base.DatabaseWrapper):
    """`release_to_pool` puts the connection into the pool; the next statement acquires one from it, or connects.

    `is_kept`: it does nothing, since the thread holds something of the session.
    """

    is_kept = False

    def connect(self) -> None:
        """Acquire an idle connection or open one. Waits a little while the server has too many connections."""
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
        """Release the connection, except within a transaction or after an error, which needs a health check first."""
        raw = self.connection
        if raw is None or self.is_kept or self.in_atomic_block or not self.autocommit or self.errors_occurred:
            return
        if raw.pgconn.transaction_status == TransactionStatus.IDLE:
            self.connection = None
            POOL.release(raw, database=self.settings_dict["NAME"])

    def close_if_unusable_or_obsolete(self) -> None:
        """Also release the connection: Django calls this before and after each request."""
        super().close_if_unusable_or_obsolete()
        self.release_to_pool()

    def _close(self) -> None:
        """Also close the idle ones: what broke this one (a failover, a network cut) broke the others as well."""
        POOL.close_all()
        super()._close()  # type: ignore[misc]  # the stubs leave it out

    def _reuse_idle(self) -> bool:
        while idle := POOL.acquire(database=self.settings_dict["NAME"]):
            self._adopt(idle.raw)
            if idle.is_surely_usable() or self.is_usable():
                return True
            self.connection = None
            idle.raw.close()
        return False

    def _adopt(self, raw: Any) -> None:
        """Use an open connection: set what Django's `connect` sets, without the set-up of a new session."""
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
    """Whether the server rejected a connection because it has too many. Only the English message says so."""
    return _SERVER_FULL.search(str(error)) is not None
