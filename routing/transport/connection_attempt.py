"""One request on its way to an upstream: its deadline, its socket, and what is known of it so far.

`urllib3` and `http.client` have no argument to carry it, so it stands in a thread-local while the request runs.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

    from routing.transport.abort_handle import AbortHandle


class Interrupted(Exception):  # noqa: N818
    """The call's deadline passed, or the call was aborted. `reason`: `timeout`, or the reason of the abort."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ConnectionAttempt:
    """The state of one request; use it as a context manager around the request.

    `owner`: the caller that the request is made for.
    `is_connected`: there is a connection, TLS included. `connect_error`: why none could be made, in a few words.
    `is_reused`: the connection served another request before. `is_sent`: bytes of the request may have left.
    `received`: bytes that came while the request was being written, until they are read. `is_early`: they hold the
    beginning of the final response.
    `status`: the response's, as soon as its status line and headers came, whether or not they can be read.
    `is_finished`: the response is complete, and its end is unambiguous. `has_surplus`: more bytes came after its end.
    `max_bytes`: the limit for the response as it travels, 0 for none. `is_too_large`: the response exceeded it.
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

    def use_socket(self, sock: socket.socket) -> None:
        """Attach the socket by which the request can be aborted from now on."""
        before, self._socket = self._socket, sock
        self.abort_handle.attach(sock)
        if self._owns_socket and before is not None:
            before.close()
        self._owns_socket = False

    def keep_open(self, sock: socket.socket) -> bool:
        """Take over the socket in use from a connection that closes; it is closed when the attempt ends.

        http.client closes a connection before it reads a body that ends with the connection. Returns whether `sock`
        is the socket in use.
        """
        self._owns_socket = self._owns_socket or sock is self._socket
        return sock is self._socket

    def remaining(self) -> float:
        """Seconds until the deadline, more than zero. Raises TimeoutError when none remain."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the deadline of the call")
        return seconds

    def raise_if_interrupted(self) -> None:
        if self.abort_handle.abort_reason is not None:
            raise Interrupted(self.abort_handle.abort_reason)
        if time.monotonic() >= self.deadline:
            raise Interrupted("timeout")

    def __enter__(self) -> ConnectionAttempt:
        _thread.attempt = self
        return self

    def __exit__(self, *_: object) -> None:
        _thread.attempt = None
        self.abort_handle.detach()
        self._close_owned_socket()

    def _close_owned_socket(self) -> None:
        if self._owns_socket and self._socket is not None:
            self._socket.close()
        self._owns_socket = False


class _ThreadState(threading.local):
    attempt: ConnectionAttempt | None = None


_thread = _ThreadState()


def current_attempt() -> ConnectionAttempt:
    """This thread's attempt. Raises RuntimeError when there is none."""
    if _thread.attempt is None:
        raise RuntimeError("a connection is used outside a ConnectionAttempt")
    return _thread.attempt


def attempt_or_none() -> ConnectionAttempt | None:
    return _thread.attempt
