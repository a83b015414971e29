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

from routing.failpoints import failpoint
from routing.transport.connection_attempt import attempt_or_none, current_attempt
from routing.transport.http_response import (
    MAX_HEADER_BYTES,
    UpstreamHttpResponse,
    find_final_status,
    is_early_rejection,
)
from routing.transport.idle_connections import IDLE_CONNECTIONS, Destination
from routing.transport.tcp_connect import connect

if TYPE_CHECKING:
    from routing.transport.connection_attempt import ConnectionAttempt

_POOLS_PER_THREAD = 32
_CHUNK_BYTES = 262_144
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _ThreadState(threading.local):
    transport: Transport | None = None


_thread = _ThreadState()


def get_transport() -> Transport:
    """This thread's own; the connections are those of the process."""
    if _thread.transport is None:
        _thread.transport = Transport(pool_connections=_POOLS_PER_THREAD, pool_maxsize=1)
    return _thread.transport


class ConnectionOutOfStep(OSError):  # noqa: N818
    """A used connection was closed, or has something to read, before anything of its next request was written."""


class UpstreamConnection(HTTPConnection):
    """What both kinds of connection share: the line holds a second descriptor of the socket.

    A descriptor of its own, because TLS takes the first one over, and because shutting a TLS socket from another
    thread would make the thread that reads from it read plain bytes.
    """

    response_class = UpstreamHttpResponse
    place: Destination
    is_used = False
    _is_writing = False
    _held: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        attempt = current_attempt()
        try:
            sock = connect(
                (self._dns_host, self.port),
                abort_handle=attempt.abort_handle,
                remaining=attempt.remaining,
                options=self.socket_options or (),
            )
        except OSError as error:
            attempt.connect_error = str(error.strerror or error)
            raise NewConnectionError(self, "no connection could be made") from error
        sock.settimeout(max(attempt.deadline - time.monotonic(), 0.001))
        self._held = sock.dup()
        attempt.use_socket(self._held)
        return sock

    def connect(self) -> None:
        super().connect()
        current_attempt().is_connected = True

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Connects first, so that a connection that cannot be made is told from a request that got lost."""
        attempt = current_attempt()
        if self.sock is None:
            self.connect()
        else:
            self._held = self._held or socket.fromfd(self.sock.fileno(), self.sock.family, self.sock.type)
            attempt.use_socket(self._held)
        failpoint("before_send")
        attempt.is_connected, attempt.is_reused = True, self.is_used
        self._is_writing = True
        try:
            super().request(*args, **kwargs)
        finally:
            self._is_writing = False

    def send(self, data: Any) -> None:
        if not self._is_writing:  # to a proxy, on the way to the upstream
            super().send(data)
            return
        attempt = current_attempt()
        if not attempt.is_sent:
            self._require_silent(attempt)
        attempt.is_sent = True
        try:
            self._write(memoryview(data), attempt)
        except OSError:
            # urllib3 reads on where the upstream has hung up: what is found then came early.
            attempt.is_early = True
            raise

    def _require_silent(self, attempt: ConnectionAttempt) -> None:
        """A new connection may be told that it is not welcome; what is on a used one is for nobody."""
        if self.is_used and not IDLE_CONNECTIONS.is_silent(self):
            attempt.is_connected, attempt.connect_error = False, "the connection in use was out of step"
            raise ConnectionOutOfStep

    def _write(self, data: memoryview, attempt: ConnectionAttempt) -> None:
        """As long as there is no answer: what is not wanted any more might not even be read."""
        while data and not self._response_has_begun(attempt):
            try:
                data = data[self.sock.send(data[:_CHUNK_BYTES]) :]
            except _WOULD_BLOCK:
                wait_for_socket(self.sock, read=True, write=True, timeout=attempt.remaining())

    def _response_has_begun(self, attempt: ConnectionAttempt) -> bool:
        """Whether the final answer has begun. What has come, interim answers too, is left to whoever reads it."""
        more = b"" if attempt.is_early else self._receive()
        if more:
            attempt.received += more
            status = find_final_status(attempt.received)
            attempt.is_early = status is not None or len(attempt.received) >= MAX_HEADER_BYTES
            if status is not None and self.is_used and not is_early_rejection(status):
                IDLE_CONNECTIONS.distrust(self.place)
        return attempt.is_early

    def _receive(self) -> bytes:
        """Of the answer, by now. Raises OSError when nothing more can come. Leaves the socket without a time-out."""
        self.sock.settimeout(0)
        try:
            arrived = bytes(self.sock.recv(_CHUNK_BYTES))
        except _WOULD_BLOCK:
            return b""
        if not arrived:
            raise ConnectionResetError("the upstream hung up on the request")
        return arrived

    def let_go(self, attempt: ConnectionAttempt) -> None:
        """Between two requests: a cut of the former does not meet the next, and one descriptor is enough."""
        attempt.abort_handle.detach()
        if self._held is not None:
            self._held.close()
            self._held = None

    def close(self) -> None:
        held, self._held = self._held, None
        attempt = attempt_or_none()
        if held is not None and not (attempt is not None and attempt.keep_open(held)):
            held.close()
        super().close()


class _PlainConnection(UpstreamConnection):
    pass


class _TlsConnection(UpstreamConnection, HTTPSConnection):
    pass


class _SharedPool(HTTPConnectionPool):
    """Takes its connections from those of the process, and gives them back there."""

    def _get_conn(self, timeout: float | None = None) -> Any:  # noqa: ARG002
        place = Destination(self.scheme, self.host, self.port, str(self.proxy or ""))
        connection: Any = IDLE_CONNECTIONS.take(owner=current_attempt().owner, destination=place)
        if connection is None:
            connection = self._new_conn()
            connection.place = place
        return connection

    def _put_conn(self, conn: Any) -> None:
        """Called in the trip of the request, as soon as the answer is read or given up.

        What lay behind it makes its upstream distrusted, whose connections are not kept.
        """
        attempt = attempt_or_none()
        if conn is None or attempt is None or conn.sock is None:
            return
        if attempt.has_surplus:
            IDLE_CONNECTIONS.distrust(conn.place)
        if attempt.is_finished and not attempt.is_early:
            conn.is_used = True
            conn.let_go(attempt)
            IDLE_CONNECTIONS.keep(conn, owner=attempt.owner)
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
