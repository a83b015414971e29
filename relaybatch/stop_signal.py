"""What a signal handler sets and the interrupted thread waits for."""

from __future__ import annotations

import contextlib
from queue import Empty, SimpleQueue


class StopSignal:
    """Like threading.Event, which is no use here: a handler runs in the main thread, perhaps while that holds the
    event's own lock, and would wait for it for ever. Putting into a SimpleQueue is safe at any moment.
    """

    def __init__(self) -> None:
        self._asked = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        self._asked = True
        self._wake.put(None)

    def is_set(self) -> bool:
        return self._asked

    def wait(self, seconds: float) -> bool:
        """Until it is set or the time is over; whether it is set."""
        if not self._asked:
            with contextlib.suppress(Empty):
                self._wake.get(timeout=seconds)
        return self._asked
