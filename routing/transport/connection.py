"""One connection to an upstream, on a socket that another thread may shut down.

`http.client` and `urllib3` write the request. This file changes how the connection is made, stops writing when a
response has begun, and checks that a reused connection is silent; http_response.py reads the response.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError
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

_CHUNK_BYTES = 262_144
_MAX_JOINED_BYTES = 65_536
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ConnectionOutOfStep(OSError):  # noqa: N818
    """A reused connection was closed, or had unread bytes, before anything of its next request was written."""


class UpstreamConnection(HTTPConnection):
    """The common part of plain and TLS connections: the abort handle gets a second descriptor of the socket.

    It needs its own one, because TLS takes over the first, and because shutting down a TLS socket from another thread
    would make the reading thread read plain bytes.
    """

    response_class = UpstreamHttpResponse
    destination: Destination
    is_used = False
    _is_writing = False
    _head = b""
    _abort_socket: socket.socket | None = None

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
        self._abort_socket = sock.dup()
        attempt.use_socket(self._abort_socket)
        return sock

    def connect(self) -> None:
        super().connect()
        current_attempt().is_connected = True

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Connect first: a failed connect must not look like a request that was lost."""
        attempt = current_attempt()
        if self.sock is None:
            self.connect()
        else:
            self._abort_socket = self._abort_socket or socket.fromfd(
                self.sock.fileno(), self.sock.family, self.sock.type
            )
            attempt.use_socket(self._abort_socket)
        failpoint("before_send")
        attempt.is_connected, attempt.is_reused = True, self.is_used
        self._is_writing, self._head = True, b""
        try:
            super().request(*args, **kwargs)
            if not attempt.is_sent:
                self._send_now(self._head, attempt)
        finally:
            self._is_writing = False

    def send(self, data: Any) -> None:
        if not self._is_writing:  # to a proxy, on the way to the upstream
            super().send(data)
            return
        attempt = current_attempt()
        if not attempt.is_sent and not self._head:
            # The head of the request: it travels with a small body, in one write.
            self._head = data
        elif attempt.is_sent:
            self._send_now(data, attempt)
        elif len(data) <= _MAX_JOINED_BYTES:
            self._send_now(self._head + data, attempt)
        else:
            self._send_now(self._head, attempt)
            self._send_now(data, attempt)

    def _send_now(self, data: bytes, attempt: ConnectionAttempt) -> None:
        if not attempt.is_sent:
            self._require_silent(attempt)
        attempt.is_sent = True
        try:
            self._write(memoryview(data), attempt)
        except OSError:
            # urllib3 goes on to read when the upstream has hung up: a response found then came early.
            attempt.is_early = True
            raise

    def _require_silent(self, attempt: ConnectionAttempt) -> None:
        """Raise ConnectionOutOfStep for unread bytes on a reused connection, which answer no request of ours.

        A new connection may have some: servers that reject a connection say so at once.
        """
        if self.is_used and not IDLE_CONNECTIONS.is_silent(self):
            attempt.is_connected, attempt.connect_error = False, "the connection in use was out of step"
            raise ConnectionOutOfStep

    def _write(self, data: memoryview, attempt: ConnectionAttempt) -> None:
        """Write until a response begins: an upstream that has rejected the request may not read the rest."""
        while data and not self._response_has_begun(attempt):
            try:
                data = data[self.sock.send(data[:_CHUNK_BYTES]) :]
            except _WOULD_BLOCK:
                wait_for_socket(self.sock, read=True, write=True, timeout=attempt.remaining())

    def _response_has_begun(self, attempt: ConnectionAttempt) -> bool:
        """Whether the final response has begun. The bytes received, interim responses too, are kept for the reader."""
        more = b"" if attempt.is_early else self._receive()
        if more:
            attempt.received += more
            status = find_final_status(attempt.received)
            attempt.is_early = status is not None or len(attempt.received) >= MAX_HEADER_BYTES
            if status is not None and self.is_used and not is_early_rejection(status):
                IDLE_CONNECTIONS.distrust(self.destination)
        return attempt.is_early

    def _receive(self) -> bytes:
        """Bytes of a response that are there by now. Raises OSError when nothing more can come.

        Leaves the socket non-blocking.
        """
        self.sock.settimeout(0)
        try:
            received = bytes(self.sock.recv(_CHUNK_BYTES))
        except _WOULD_BLOCK:
            return b""
        if not received:
            raise ConnectionResetError("the upstream hung up on the request")
        return received

    def release(self, attempt: ConnectionAttempt) -> None:
        """Detach from the request: its abort must not hit the next one. Idle, one descriptor is enough."""
        attempt.abort_handle.detach()
        if self._abort_socket is not None:
            self._abort_socket.close()
            self._abort_socket = None

    def close(self) -> None:
        sock, self._abort_socket = self._abort_socket, None
        attempt = attempt_or_none()
        if sock is not None and not (attempt is not None and attempt.keep_open(sock)):
            sock.close()
        super().close()


class PlainConnection(UpstreamConnection):
    pass


class TlsConnection(UpstreamConnection, HTTPSConnection):
    pass
