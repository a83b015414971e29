"""Connections to PostgreSQL that no thread of this process uses at the moment; the next one that asks takes them.

So a process has as many as its threads use at once, and processes share a server that has fewer than all of their
threads want: nobody waits for long for what another only keeps. relaybatch/db/postgresql/base.py takes and puts.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.db import connections

if TYPE_CHECKING:
    import psycopg

    Raw = psycopg.Connection[Any]

# Long enough that a process at work connects hardly ever, and soon given back to the server by one that rests.
MAX_IDLE_SECONDS = 1.0
POLL_INTERVAL_SECONDS = 0.25
# A server without room: whoever meets that goes on with half of what it has for a while, so that others find some.
SERVER_FULL_SECONDS = 5.0
# Who has all that it wants never meets it, and leaves one to others now and then, for longer than they pause.
MAX_AGE_SECONDS = 15.0
YIELD_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class IdleConnection:
    """`checked`: it need not be asked whether it still works."""

    raw: Raw
    database: str
    is_checked: bool
    idle_since: float


class ConnectionPool:
    """Last in, first out, so that what is not needed becomes idle, and is closed after MAX_IDLE_SECONDS.

    `waiting`: how many threads wait for one.
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
        """The server has no room."""
        with self._changed:
            self._limit_open(self._count_open() // 2, seconds=SERVER_FULL_SECONDS)

    def may_open(self) -> bool:
        with self._changed:
            return time.monotonic() >= self._max_open_until or self._count_open() < self._max_open

    def release(self, raw: Raw, *, database: str, is_checked: bool) -> None:
        """Closes it when this process has more than it should."""
        with self._changed:
            keep = not self._must_close(raw)
            if keep:
                self._idle.append(IdleConnection(raw, database, is_checked, time.monotonic()))
                self._ensure_cleanup_thread()
                self._changed.notify_all()
            else:
                del self._opened_at[raw]
        if not keep:
            raw.close()

    def acquire(self, *, database: str) -> IdleConnection | None:
        with self._changed:
            for place, spare in reversed(list(enumerate(self._idle))):
                if spare.database == database:
                    return self._idle.pop(place)
            return None

    def wait_for_idle(self, *, seconds: float) -> None:
        """Until there is one, or the time is over."""
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
        """Starts the thread with the first one (so, after a fork); it lasts as long as the process."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="spare connections", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._idle))
            time.sleep(POLL_INTERVAL_SECONDS)
            self._close_before(time.monotonic() - MAX_IDLE_SECONDS)

    def _close_before(self, moment: float) -> None:
        with self._changed:
            closing = [spare for spare in self._idle if spare.idle_since < moment]
            self._idle = [spare for spare in self._idle if spare.idle_since >= moment]
        for spare in closing:
            spare.raw.close()


POOL = ConnectionPool()


def release_connection() -> None:
    """For a thread that will not ask the database for a while: another one may use its connection meanwhile.

    Safe to call at any moment: within a transaction it changes nothing, and the next statement connects again.
    """
    for connection in connections.all(initialized_only=True):
        connection.release_to_pool()  # type: ignore[attr-defined]
