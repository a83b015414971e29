"""Open connections between two requests, and which of them may serve the next one.

HTTP/1.1 says of an answer only that it is the next one on its connection. So a connection is used again only after a
plainly finished answer (http_response.py), for the same owner, and after a while of silence, in which an answer
too many would have shown: the longest silent one first. An upstream that once sent what nobody had asked for gets a
connection for each request, as long as this process lives.
"""

from __future__ import annotations

import atexit
import logging
import ssl
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import socket

    from routing.transport.connection_pool import UpstreamConnection

logger = logging.getLogger(__name__)

MAX_IDLE_SECONDS = 4.0
"""Upstreams close idle connections after five seconds or more; a request must not meet that moment."""

MIN_IDLE_SECONDS = 0.25
"""A second answer to one request comes, if it does, in the moment after the first."""

REUSE_WITHOUT_WAIT_CONNECTIONS = 16
"""Of one owner to one upstream: with so many idle, the longest silent one serves, however short that was."""

MAX_IDLE_CONNECTIONS = 64
"""Idle ones of the process. The oldest are closed."""


class Destination(NamedTuple):
    """Where a connection leads: the upstream's address, or the proxy's before it."""

    scheme: str
    host: str
    port: int | None
    proxy: str


class _Idle(NamedTuple):
    owner: str
    connection: UpstreamConnection
    since: float

    @property
    def destination(self) -> Destination:
        return self.connection.place


class IdleConnections:
    """Of all threads of the process. Each connection is in one hand at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []
        self._out_of_step: set[Destination] = set()

    def take(self, *, owner: str, destination: Destination) -> UpstreamConnection | None:
        while (found := self._pop(owner=owner, destination=destination)) is not None:
            if self.is_silent(found.connection):
                return found.connection
            found.connection.close()
        return None

    def is_silent(self, connection: UpstreamConnection) -> bool:
        """Whether it is open, and nothing came on it that was not asked for, which makes its upstream distrusted."""
        unread = _read_unrequested(connection.sock)
        if unread:
            self.distrust(connection.place)
        return unread is None

    def keep(self, connection: UpstreamConnection, *, owner: str) -> None:
        """Takes the connection over; closes it when it may not serve again."""
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
        """This upstream has sent bytes that no request of ours had asked for."""
        with self._lock:
            is_news = destination not in self._out_of_step
            self._out_of_step.add(destination)
            dropped = [one for one in self._idle if one.destination == destination]
            self._idle = [one for one in self._idle if one.destination != destination]
        for one in dropped:
            one.connection.close()
        if is_news:
            logger.warning(
                "upstream out of step: it sent bytes that no request had asked for; from now on each request "
                "has a connection of its own",
                extra={"host": destination.host},
            )

    def close_expired(self) -> None:
        """Those that lay too long to serve again. For whoever wakes up now and then: nobody may come for them."""
        with self._lock:
            to_close = self._pop_expired(now=time.monotonic())
        for one in to_close:
            one.connection.close()

    def close_all(self) -> None:
        """Also forgets who was distrusted."""
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
        """Takes out those that lay too long, or are too many; they lie in the order of their times."""
        too_many = len(self._idle) - MAX_IDLE_CONNECTIONS
        to_close = [
            one
            for number, one in enumerate(self._idle)
            if number < too_many or now - one.since > MAX_IDLE_SECONDS
        ]
        self._idle = self._idle[len(to_close) :]
        return to_close


def _read_unrequested(sock: socket.socket | None) -> bytes | None:
    """None: silent, as it should be. Else what came while nothing was asked; empty when it is closed or broken."""
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
