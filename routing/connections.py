"""Connections to upstreams: one pool for each thread, on sockets that another thread may cut.

`requests` and `urllib3` do the HTTP. This file changes how a connection is dialled, how long it may lie idle, and
how long a read may take: until the deadline of the call, whatever the upstream does in between.
"""

from __future__ import annotations

import functools
import io
import threading
import time
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any

import certifi
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError
from urllib3.util.ssl_ import create_urllib3_context

from routing.dialling import dial
from routing.faults import reach

if TYPE_CHECKING:
    import socket
    import ssl

    from routing.call import Line

MAX_IDLE_SECONDS = 4.0
"""Upstreams close idle connections after five seconds or more; a request must not meet that moment."""

MAX_HEADER_BYTES = 262_144
"""Of one answer. Read, they take ten times as much."""

_POOLS_PER_THREAD = 32


class Trip:
    """One request on its way. `connected`: there is a connection, TLS included. `sent`: bytes may have left.

    `trouble`: why no connection could be made, in a few words.
    """

    def __init__(self, *, line: Line, deadline: float) -> None:
        self.line = line
        self.deadline = deadline
        self.connected = False
        self.sent = False
        self.trouble = ""
        self._held: socket.socket | None = None
        self._adopted = False

    def hold(self, held: socket.socket) -> None:
        """The socket by which the line can cut this request from now on."""
        self._close_adopted()
        self._held = held
        self.line.attach(held)

    def adopt(self, held: socket.socket) -> bool:
        """When the connection lets go of the socket in use, it is kept, and closed at the end of the trip.

        For an answer that ends with its connection, http.client closes the connection before the body is read.
        """
        self._adopted = self._adopted or held is self._held
        return held is self._held

    def remaining(self) -> float:
        """Seconds, more than zero. Raises TimeoutError when there are none."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the deadline of the call")
        return seconds

    def __enter__(self) -> Trip:
        _thread.trip = self
        return self

    def __exit__(self, *_: object) -> None:
        _thread.trip = None
        self.line.detach()
        self._close_adopted()

    def _close_adopted(self) -> None:
        if self._adopted and self._held is not None:
            self._held.close()
        self._adopted = False


class _OfThread(threading.local):
    trip: Trip | None = None
    transport: Transport | None = None


_thread = _OfThread()


def _trip() -> Trip:
    if _thread.trip is None:
        raise RuntimeError("a connection is used outside a Trip")
    return _thread.trip


def transport() -> Transport:
    """This thread's own: its connections are used by no other thread."""
    if _thread.transport is None:
        _thread.transport = Transport(pool_connections=_POOLS_PER_THREAD, pool_maxsize=1)
    return _thread.transport


class _TimedReader(io.RawIOBase):
    """Reads from a socket until the deadline of the trip: a byte a second does not begin the time anew."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, trip: Trip) -> None:
        self._raw = raw
        self._sock = sock
        self._trip = trip

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._trip.remaining())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _BoundedLines(io.BufferedReader):
    """`left`: how many bytes of lines may still be read; None while there is no limit."""

    left: int | None = None

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if self.left is not None:
            self.left -= len(line)
            if self.left < 0:
                raise HTTPException("the headers are too large")
        return line


class _TimedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp: Any = _BoundedLines(_TimedReader(self.fp.detach(), sock, _trip()), 65_536)

    def begin(self) -> None:
        lines = self.fp
        lines.left = MAX_HEADER_BYTES
        super().begin()
        lines.left = None


class _OnALine(HTTPConnection):
    """What both kinds of connection share: the line holds a second descriptor of the socket.

    A descriptor of its own, because TLS takes the first one over, and because shutting a TLS socket from another
    thread would make the thread that reads from it read plain bytes.
    """

    response_class = _TimedResponse
    idle_since = 0.0
    _held: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        trip = _trip()
        try:
            sock = dial(
                (self._dns_host, self.port),
                line=trip.line,
                remaining=trip.remaining,
                options=self.socket_options or (),
            )
        except OSError as error:
            trip.trouble = str(error.strerror or error)
            raise NewConnectionError(self, "no connection could be made") from error
        sock.settimeout(max(trip.deadline - time.monotonic(), 0.001))
        self._held = sock.dup()
        trip.hold(self._held)
        return sock

    def connect(self) -> None:
        super().connect()
        _trip().connected = True

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Connects first, so that a connection that cannot be made is told from a request that got lost."""
        trip = _trip()
        if self.sock is None:
            self.connect()
        elif self._held is not None:
            trip.hold(self._held)
        self.sock.settimeout(trip.remaining())
        reach("before_send")
        trip.connected = trip.sent = True
        super().request(*args, **kwargs)

    @property
    def is_connected(self) -> bool:
        idle = bool(self.idle_since) and time.monotonic() - self.idle_since > MAX_IDLE_SECONDS
        return not idle and super().is_connected

    def close(self) -> None:
        held, self._held = self._held, None
        if held is not None and not (_thread.trip is not None and _thread.trip.adopt(held)):
            held.close()
        self.idle_since = 0.0
        super().close()


class _PlainConnection(_OnALine):
    pass


class _TlsConnection(_OnALine, HTTPSConnection):
    pass


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection

    def _put_conn(self, conn: Any) -> None:
        _begin_idling(conn)
        super()._put_conn(conn)


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection

    def _put_conn(self, conn: Any) -> None:
        _begin_idling(conn)
        super()._put_conn(conn)


def _begin_idling(conn: _OnALine | None) -> None:
    if conn is not None:
        conn.idle_since = time.monotonic()


class Transport(HTTPAdapter):
    """Verifies TLS against the certificates of certifi and of the machine. Never repeats a request by itself."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, ssl_context=tls_context())
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs, ssl_context=tls_context())
        manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
        return manager

    def cert_verify(self, *_: Any, **__: Any) -> None:
        """The shared TLS context has what requests would load again for every connection."""


@functools.cache
def tls_context() -> ssl.SSLContext:
    context = create_urllib3_context()
    context.load_verify_locations(certifi.where())
    context.load_default_certs()
    return context
