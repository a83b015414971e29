"""Idle connections, and which of them may serve the next request.

In HTTP/1.1, a response belongs to a request only by its order on the connection: one response too many is taken for the
answer to the next request, perhaps another caller's. So a connection is reused only after a response whose end is
unambiguous (http_response.py), only for the same owner, and only after a while of silence, in which a surplus response
would have arrived. The connection that has been silent longest is reused first. An upstream that once sent bytes that
no request asked for gets a new connection for each request, as long as this process lives.
"""

from __future__ import annotations

import atexit
import logging
import ssl
import threading
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import socket

logger = logging.getLogger(__name__)

MAX_IDLE_SECONDS = 4.0
"""Upstreams close idle connections after five seconds or more; a request must not be sent at that moment."""

MIN_IDLE_SECONDS = 0.25
"""A second response to one request, if there is one, arrives shortly after the first."""

REUSE_WITHOUT_WAIT_CONNECTIONS = 16
"""With so many idle connections of one owner to one upstream, the longest silent one is reused without waiting."""

MAX_IDLE_CONNECTIONS = 64
"""For the whole process; beyond that, the oldest are closed."""


class Destination(NamedTuple):
    """Where a connection leads: the upstream's address, and the proxy before it if any."""

    scheme: str
    host: str
    port: int | None
    proxy: str


class PooledConnection(Protocol):
    """What may be kept idle: an UpstreamConnection."""

    destination: Destination
    sock: socket.socket | None

    def close(self) -> None: ...


class _Idle(NamedTuple):
    owner: str
    connection: PooledConnection
    since: float

    @property
    def destination(self) -> Destination:
        return self.connection.destination


class IdleConnections:
    """The idle connections of all threads of the process. A connection is used by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []
        self._out_of_step: set[Destination] = set()

    def take(self, *, owner: str, destination: Destination) -> PooledConnection | None:
        """Remove and return a connection that may be reused; None when there is none."""
        while (found := self._pop(owner=owner, destination=destination)) is not None:
            if self.is_silent(found.connection):
                return found.connection
            found.connection.close()
        return None

    def is_silent(self, connection: PooledConnection) -> bool:
        """Whether the connection is open and has nothing to read. Unread bytes make its upstream distrusted."""
        unread = _read_unrequested(connection.sock)
        if unread:
            self.distrust(connection.destination)
        return unread is None

    def keep(self, connection: PooledConnection, *, owner: str) -> None:
        """Take over the connection; close it when it may not be reused."""
        with self._lock:
            kept = _Idle(owner, connection, time.monotonic())
            if kept.destination in self._out_of_step:
                to_close = [kept]
            else:
                self._idle.append(kept)
                to_close = self._pop_expired(now=kept.since)
        for one in to_close:
            one.connection.close()

    def distrust(self, destination: Destination) -> None:
        """Close and no longer keep the upstream's connections: it sent bytes that no request had asked for."""
        with self._lock:
            is_first = destination not in self._out_of_step
            self._out_of_step.add(destination)
            dropped = [one for one in self._idle if one.destination == destination]
            self._idle = [one for one in self._idle if one.destination != destination]
        for one in dropped:
            one.connection.close()
        if is_first:
            logger.warning("upstream connection out of step", extra={"host": destination.host})

    def close_expired(self) -> None:
        """Close the connections that were idle too long. Call it regularly, since no call may need one for a while."""
        with self._lock:
            to_close = self._pop_expired(now=time.monotonic())
        for one in to_close:
            one.connection.close()

    def close_all(self) -> None:
        """Close all connections, and trust every upstream again."""
        with self._lock:
            dropped, self._idle, self._out_of_step = self._idle, [], set()
        for one in dropped:
            one.connection.close()

    def _pop(self, *, owner: str, destination: Destination) -> _Idle | None:
        with self._lock:
            now = time.monotonic()
            to_close = self._pop_expired(now=now)
            own = [one for one in self._idle if one.owner == owner and one.destination == destination]
            is_silent = bool(own) and now - own[0].since >= MIN_IDLE_SECONDS
            found = own[0] if is_silent or len(own) >= REUSE_WITHOUT_WAIT_CONNECTIONS else None
            if found is not None:
                self._idle.remove(found)
        for one in to_close:
            one.connection.close()
        return found

    def _pop_expired(self, *, now: float) -> list[_Idle]:
        """Remove the connections that were idle too long or are too many. The list is in the order of `since`."""
        too_many = len(self._idle) - MAX_IDLE_CONNECTIONS
        to_close = [
            one
            for number, one in enumerate(self._idle)
            if number < too_many or now - one.since > MAX_IDLE_SECONDS
        ]
        self._idle = self._idle[len(to_close) :]
        return to_close


def _read_unrequested(sock: socket.socket | None) -> bytes | None:
    """Return a byte that no request asked for; empty when the socket is closed or broken, None when it is silent."""
    if sock is None:
        return b""
    try:
        sock.settimeout(0)
        return sock.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None
    except (OSError, ValueError):
        return b""


IDLE_CONNECTIONS = IdleConnections()
atexit.register(IDLE_CONNECTIONS.close_all)
