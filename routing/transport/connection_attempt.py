"""One request on its way to an upstream, and what is known of it so far."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

    from routing.upstream.call import Line


class Trip:
    """`connected`: there is a connection, TLS included. `sent`: bytes may have left.

    `owner`: whose request it is. `trouble`: why no connection could be made, in a few words. `is_reused`: the
    connection served another request before. `arrived`: what came while the request was written, until it is read.
    `early`: the final answer began then. `status`: of the answer, once its status line and headers came, readable or
    not. `finished`: it is whole, and its end is plain. `surplus`: something lay behind it. `max_bytes`: of the answer
    as it travels, 0 for any number; `is_too_large`: it had more.
    """

    def __init__(self, *, line: Line, deadline: float, owner: str) -> None:
        self.line = line
        self.deadline = deadline
        self.owner = owner
        self.connected = False
        self.sent = False
        self.trouble = ""
        self.is_reused = False
        self.arrived = b""
        self.early = False
        self.max_bytes = 0
        self.is_too_large = False
        self.status = 0
        self.surplus = False
        self.finished = False
        self._held: socket.socket | None = None
        self._adopted = False

    def hold(self, held: socket.socket) -> None:
        """The socket by which the line can cut this request from now on."""
        before, self._held = self._held, held
        self.line.attach(held)
        if self._adopted and before is not None:
            before.close()
        self._adopted = False

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


_thread = _OfThread()


def current_trip() -> Trip:
    """The one that this thread is on."""
    if _thread.trip is None:
        raise RuntimeError("a connection is used outside a Trip")
    return _thread.trip


def trip_if_any() -> Trip | None:
    return _thread.trip
