"""Connections to upstreams, on sockets that another thread may cut.

`requests` and `urllib3` do the HTTP. This file changes how a connection is dialled, and what becomes of it between two
requests (idle_connections.py); how an answer is read from it stands in http_response.py.
"""

from __future__ import annotations

import functools
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

import certifi
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError
from urllib3.util.ssl_ import create_urllib3_context
from urllib3.util.wait import wait_for_socket

from routing.failpoints import reach
from routing.transport.connection_attempt import current_trip, trip_if_any
from routing.transport.http_response import MAX_HEADER_BYTES, UpstreamAnswer, final_status_in, is_refusal
from routing.transport.idle_connections import IDLE, Place
from routing.transport.tcp_connect import dial

if TYPE_CHECKING:
    from routing.transport.connection_attempt import Trip

_POOLS_PER_THREAD = 32
_PIECE_BYTES = 262_144
_WOULD_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _OfThread(threading.local):
    transport: Transport | None = None


_thread = _OfThread()


def transport() -> Transport:
    """This thread's own; the connections are those of the process."""
    if _thread.transport is None:
        _thread.transport = Transport(pool_connections=_POOLS_PER_THREAD, pool_maxsize=1)
    return _thread.transport


class OutOfStep(OSError):  # noqa: N818
    """A used connection was closed, or has something to read, before anything of its next request was written."""


class UpstreamConnection(HTTPConnection):
    """What both kinds of connection share: the line holds a second descriptor of the socket.

    A descriptor of its own, because TLS takes the first one over, and because shutting a TLS socket from another
    thread would make the thread that reads from it read plain bytes.
    """

    response_class = UpstreamAnswer
    place: Place
    is_used = False
    _is_writing = False
    _held: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        trip = current_trip()
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
        current_trip().connected = True

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Connects first, so that a connection that cannot be made is told from a request that got lost."""
        trip = current_trip()
        if self.sock is None:
            self.connect()
        else:
            self._held = self._held or socket.fromfd(self.sock.fileno(), self.sock.family, self.sock.type)
            trip.hold(self._held)
        reach("before_send")
        trip.connected, trip.is_reused = True, self.is_used
        self._is_writing = True
        try:
            super().request(*args, **kwargs)
        finally:
            self._is_writing = False

    def send(self, data: Any) -> None:
        if not self._is_writing:  # to a proxy, on the way to the upstream
            super().send(data)
            return
        trip = current_trip()
        if not trip.sent:
            self._require_silence(trip)
        trip.sent = True
        try:
            self._write(memoryview(data), trip)
        except OSError:
            # urllib3 reads on where the upstream has hung up: what is found then came early.
            trip.early = True
            raise

    def _require_silence(self, trip: Trip) -> None:
        """A new connection may be told that it is not welcome; what is on a used one is for nobody."""
        if self.is_used and not IDLE.is_silent(self):
            trip.connected, trip.trouble = False, "the connection in use was out of step"
            raise OutOfStep

    def _write(self, data: memoryview, trip: Trip) -> None:
        """As long as there is no answer: what is not wanted any more might not even be read."""
        while data and not self._is_answered(trip):
            try:
                data = data[self.sock.send(data[:_PIECE_BYTES]) :]
            except _WOULD_WAIT:
                wait_for_socket(self.sock, read=True, write=True, timeout=trip.remaining())

    def _is_answered(self, trip: Trip) -> bool:
        """Whether the final answer has begun. What has come, interim answers too, is left to whoever reads it."""
        more = b"" if trip.early else self._arrived()
        if more:
            trip.arrived += more
            status = final_status_in(trip.arrived)
            trip.early = status is not None or len(trip.arrived) >= MAX_HEADER_BYTES
            if status is not None and self.is_used and not is_refusal(status):
                IDLE.distrust(self.place)
        return trip.early

    def _arrived(self) -> bytes:
        """Of the answer, by now. Raises OSError when nothing more can come. Leaves the socket without a time-out."""
        self.sock.settimeout(0)
        try:
            arrived = bytes(self.sock.recv(_PIECE_BYTES))
        except _WOULD_WAIT:
            return b""
        if not arrived:
            raise ConnectionResetError("the upstream hung up on the request")
        return arrived

    def let_go(self, trip: Trip) -> None:
        """Between two requests: a cut of the former does not meet the next, and one descriptor is enough."""
        trip.line.detach()
        if self._held is not None:
            self._held.close()
            self._held = None

    def close(self) -> None:
        held, self._held = self._held, None
        trip = trip_if_any()
        if held is not None and not (trip is not None and trip.adopt(held)):
            held.close()
        super().close()


class _PlainConnection(UpstreamConnection):
    pass


class _TlsConnection(UpstreamConnection, HTTPSConnection):
    pass


class _SharedPool(HTTPConnectionPool):
    """Takes its connections from those of the process, and gives them back there."""

    def _get_conn(self, timeout: float | None = None) -> Any:  # noqa: ARG002
        place = Place(self.scheme, self.host, self.port, str(self.proxy or ""))
        connection: Any = IDLE.take(owner=current_trip().owner, place=place)
        if connection is None:
            connection = self._new_conn()
            connection.place = place
        return connection

    def _put_conn(self, conn: Any) -> None:
        """Called in the trip of the request, as soon as the answer is read or given up.

        What lay behind it makes its upstream distrusted, whose connections are not kept.
        """
        trip = trip_if_any()
        if conn is None or trip is None or conn.sock is None:
            return
        if trip.surplus:
            IDLE.distrust(conn.place)
        if trip.finished and not trip.early:
            conn.is_used = True
            conn.let_go(trip)
            IDLE.keep(conn, owner=trip.owner)
        else:
            conn.close()


class _PlainPool(_SharedPool):
    ConnectionCls = _PlainConnection


class _TlsPool(_SharedPool, HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class Transport(HTTPAdapter):
    """Verifies TLS against the certificates of certifi, the machine and the settings. Never repeats a request."""

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
    context.load_default_certs()  # of SSL_CERT_FILE and SSL_CERT_DIR, where they are set
    for file in settings.UPSTREAM_CERTIFICATES:
        context.load_verify_locations(file)
    return context
