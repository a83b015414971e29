"""What a signal handler sets and the interrupted thread waits for; and the end of a process that waits too long."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from queue import Empty, SimpleQueue

logger = logging.getLogger(__name__)

# What process managers are told to wait beyond the grace is a second more (docs/operations.md).
EXIT_MARGIN_SECONDS = 4.0
DAY_SECONDS = 86_400.0


class StopSignal:
    """Like threading.Event, which is no use here: a handler runs in the main thread, perhaps while that holds the
    event's own lock, and would wait for it for ever. Putting into a SimpleQueue is safe at any moment.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        self._is_set = True
        self._wake.put(None)

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Until it is set or the time is over; whether it is set. Any number of threads may wait."""
        if not self._is_set:
            with contextlib.suppress(Empty):
                self._wake.get(timeout=seconds)
                self._wake.put(None)  # for the next one that waits
        return self._is_set


def exit_after(stop: StopSignal, *, seconds: float) -> None:
    """Ends the process so long after it was told to end, whatever it still waits for.

    A server that takes a question and never answers cannot be left otherwise. What it held is as a killed one's.
    """
    threading.Thread(target=_exit_after, args=(stop, seconds), name="end", daemon=True).start()


def _exit_after(stop: StopSignal, seconds: float) -> None:
    while not stop.wait(DAY_SECONDS):
        pass
    time.sleep(seconds)
    logger.warning("process exits while still waiting for a server")
    os._exit(0)
