"""The pool of idle PostgreSQL connections of this process, which all of its threads share.

A process has as many connections as its threads use at the same time, and several processes can share a server that
allows fewer than all their threads want. relaybatch/db/postgresql/base.py acquires and releases. Why:
docs/adr/0009-shared-connections.md.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.db import DEFAULT_DB_ALIAS, connections

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    Raw = psycopg.Connection[Any]

# Long enough that a busy process hardly ever connects anew; an idle process soon gives them back to the server.
MAX_IDLE_SECONDS = 1.0
POLL_INTERVAL_SECONDS = 0.25
# One that was idle for longer is asked whether it still works: the way to the server may have been cut meanwhile.
MAX_UNCHECKED_SECONDS = 1.0
# After "too many connections", a process keeps only half of its connections for so long, so that others get some.
SERVER_FULL_SECONDS = 5.0
# A process that has all it needs never gets that error. So a connection this old is closed, and not replaced for
# YIELD_SECONDS, which is longer than the others wait between their tries.
MAX_AGE_SECONDS = 15.0
YIELD_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class IdleConnection:
    raw: Raw
    database: str
    idle_since: float

    def is_surely_usable(self) -> bool:
        """Whether it needs no round trip as a health check: it was used a moment ago, and the server is silent since.

        A server that ends a session says so, and closes the connection.
        """
        return time.monotonic() - self.idle_since < MAX_UNCHECKED_SECONDS and not _has_input(self.raw)


class ConnectionPool:
    """Last in, first out, so that connections which are not needed stay idle and are closed after MAX_IDLE_SECONDS.

    `waiting`: how many threads wait for a connection.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[IdleConnection] = []
        self.waiting = 0
        self._opened_at: WeakKeyDictionary[Raw, float] = WeakKeyDictionary()
        self._max_open = 0
        self._max_open_until = 0.0
        self._thread: threading.Thread | None = None

    def record_opened(self, raw: Raw) -> None:
        with self._changed:
            self._opened_at[raw] = time.monotonic()

    def record_server_full(self) -> None:
        """The server rejected a connection since it has too many: use fewer for a while."""
        with self._changed:
            self._limit_open(self._count_open() // 2, seconds=SERVER_FULL_SECONDS)

    def may_open(self) -> bool:
        with self._changed:
            return time.monotonic() >= self._max_open_until or self._count_open() < self._max_open

    def release(self, raw: Raw, *, database: str) -> None:
        """Put a connection into the pool, or close it if this process has more than it should."""
        with self._changed:
            keep = not self._must_close(raw)
            if keep:
                self._idle.append(IdleConnection(raw, database, time.monotonic()))
                self._ensure_cleanup_thread()
                self._changed.notify_all()
            else:
                del self._opened_at[raw]
        if not keep:
            raw.close()

    def acquire(self, *, database: str) -> IdleConnection | None:
        with self._changed:
            for index, idle in reversed(list(enumerate(self._idle))):
                if idle.database == database:
                    return self._idle.pop(index)
            return None

    def wait_for_idle(self, *, seconds: float) -> None:
        """Wait until a connection is idle, at most `seconds`."""
        with self._changed:
            self.waiting += 1
            self._changed.wait_for(lambda: bool(self._idle), timeout=seconds)
            self.waiting -= 1

    def close_all(self) -> None:
        self._close_before(float("inf"))

    def _count_open(self) -> int:
        return sum(not raw.closed for raw in self._opened_at)

    def _limit_open(self, max_open: int, *, seconds: float) -> None:
        self._max_open, self._max_open_until = max(max_open, 1), time.monotonic() + seconds

    def _must_close(self, raw: Raw) -> bool:
        now = time.monotonic()
        if raw not in self._opened_at:
            return False
        if now < self._max_open_until:
            return self._count_open() > self._max_open
        if is_old := now - self._opened_at[raw] > MAX_AGE_SECONDS:
            self._limit_open(self._count_open() - 1, seconds=YIELD_SECONDS)
        return is_old

    def _ensure_cleanup_thread(self) -> None:
        """Start the thread that closes idle connections. At the first release, so after a fork."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="connection pool", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._idle))
            time.sleep(POLL_INTERVAL_SECONDS)
            self._close_before(time.monotonic() - MAX_IDLE_SECONDS)

    def _close_before(self, moment: float) -> None:
        with self._changed:
            closing = [idle for idle in self._idle if idle.idle_since < moment]
            self._idle = [idle for idle in self._idle if idle.idle_since >= moment]
        for idle in closing:
            idle.raw.close()


POOL = ConnectionPool()


def release_connection() -> None:
    """Release this thread's connection to the pool, before it waits for something else than the database.

    Safe to call at any time: within a transaction or `keep_connection` it does nothing, and the next statement acquires
    a connection again.
    """
    connections[DEFAULT_DB_ALIAS].release_to_pool()  # type: ignore[attr-defined]


@contextlib.contextmanager
def keep_connection() -> Iterator[None]:
    """Keep this thread's connection within, as a lock of the session needs: nothing called here may release it."""
    database: Any = connections[DEFAULT_DB_ALIAS]
    before, database.is_kept = database.is_kept, True
    try:
        yield
    finally:
        database.is_kept = before


def _has_input(raw: Raw) -> bool:
    poll = select.poll()
    poll.register(raw.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))
