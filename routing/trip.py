"""One request on its way to an upstream, and what is known of it so far."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

    from routing.call import Line


class Trip:
    """`connected`: there is a connection, TLS included. `sent`: bytes may have left.

    `owner`: whose request it is. `trouble`: why no connection could be made, in a few words. `status`: of the answer,
    once its status line and headers came, readable or not. `early`: the answer began before the request was written
    out. `finished`: it is whole, and its end is plain. `surplus`: something lay behind it.
    """

    def __init__(self, *, line: Line, deadline: float, owner: str) -> None:
        self.line = line
        self.deadline = deadline
        self.owner = owner
        self.connected = False
        self.sent = False
        self.trouble = ""
        self.status = 0
        self.early = False
        self.surplus = False
        self.finished = False
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


_thread = _OfThread()


def current_trip() -> Trip:
    """The one that this thread is on."""
    if _thread.trip is None:
        raise RuntimeError("a connection is used outside a Trip")
    return _thread.trip


def trip_if_any() -> Trip | None:
    return _thread.trip
