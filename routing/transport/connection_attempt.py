"""One request on its way to an upstream, and what is known of it so far."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

    from routing.upstream.call import AbortHandle


class ConnectionAttempt:
    """`connected`: there is a connection, TLS included. `sent`: bytes may have left.

    `owner`: whose request it is. `trouble`: why no connection could be made, in a few words. `is_reused`: the
    connection served another request before. `arrived`: what came while the request was written, until it is read.
    `early`: the final answer began then. `status`: of the answer, once its status line and headers came, readable or
    not. `finished`: it is whole, and its end is plain. `surplus`: something lay behind it. `max_bytes`: of the answer
    as it travels, 0 for any number; `is_too_large`: it had more.
    """

    def __init__(self, *, abort_handle: AbortHandle, deadline: float, owner: str) -> None:
        self.abort_handle = abort_handle
        self.deadline = deadline
        self.owner = owner
        self.is_connected = False
        self.is_sent = False
        self.connect_error = ""
        self.is_reused = False
        self.received = b""
        self.is_early = False
        self.max_bytes = 0
        self.is_too_large = False
        self.status = 0
        self.has_surplus = False
        self.is_finished = False
        self._socket: socket.socket | None = None
        self._owns_socket = False

    def use_socket(self, held: socket.socket) -> None:
        """The socket by which the line can cut this request from now on."""
        before, self._socket = self._socket, held
        self.abort_handle.attach(held)
        if self._owns_socket and before is not None:
            before.close()
        self._owns_socket = False

    def keep_open(self, held: socket.socket) -> bool:
        """When the connection lets go of the socket in use, it is kept, and closed at the end of the trip.

        For an answer that ends with its connection, http.client closes the connection before the body is read.
        """
        self._owns_socket = self._owns_socket or held is self._socket
        return held is self._socket

    def remaining(self) -> float:
        """Seconds, more than zero. Raises TimeoutError when there are none."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the deadline of the call")
        return seconds

    def __enter__(self) -> ConnectionAttempt:
        _thread.attempt = self
        return self

    def __exit__(self, *_: object) -> None:
        _thread.attempt = None
        self.abort_handle.detach()
        self._close_adopted()

    def _close_adopted(self) -> None:
        if self._owns_socket and self._socket is not None:
            self._socket.close()
        self._owns_socket = False


class _ThreadState(threading.local):
    attempt: ConnectionAttempt | None = None


_thread = _ThreadState()


def current_attempt() -> ConnectionAttempt:
    """The one that this thread is on."""
    if _thread.attempt is None:
        raise RuntimeError("a connection is used outside a Trip")
    return _thread.attempt


def attempt_or_none() -> ConnectionAttempt | None:
    return _thread.attempt
