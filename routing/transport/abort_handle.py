"""The handle by which another thread aborts a running call."""

from __future__ import annotations

import contextlib
import socket
import threading


class AbortHandle:
    """Shuts down the sockets of one running call.

    `abort(reason)` shuts down the attached socket, and every socket that is attached later as well, so that an abort
    between two requests is not missed. The first reason is kept. `deadline` (monotonic) is set by `send()`, for itself
    and for whoever watches the handle: None until it is known where the call goes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = threading.Event()
        self.abort_reason: str | None = None
        self.deadline: float | None = None

    def attach(self, sock: socket.socket) -> None:
        with self._lock:
            self._socket = sock
            if self.abort_reason is not None:
                _shut_down(sock)

    def detach(self, sock: socket.socket | None = None) -> None:
        """Detach the socket; with `sock`, only if that is the one attached."""
        with self._lock:
            if sock is None or sock is self._socket:
                self._socket = None

    def abort(self, reason: str) -> None:
        with self._lock:
            self.abort_reason = self.abort_reason or reason
            self._aborted.set()
            if self._socket is not None:
                _shut_down(self._socket)

    def wait(self, seconds: float) -> None:
        """Sleep, but return at once when the call is aborted."""
        self._aborted.wait(seconds)


def _shut_down(sock: socket.socket) -> None:
    # The other thread may have closed the socket meanwhile, which is as good.
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
