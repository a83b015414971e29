"""A flag that signal handlers may set, and the forced exit of a process that does not stop in time."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from queue import Empty, SimpleQueue

logger = logging.getLogger(__name__)

# docs/operating/operations.md tells process managers to wait a second longer than this beyond the grace.
EXIT_MARGIN_SECONDS = 4.0
DAY_SECONDS = 86_400.0


class StopSignal:
    """Like threading.Event, but safe in signal handlers.

    A handler runs in the main thread, perhaps while that thread holds the event's own lock: it would deadlock.
    SimpleQueue.put is reentrant.
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
        """Wait until it is set, at most `seconds`. Returns whether it is set. Any number of threads may wait."""
        if not self._is_set:
            with contextlib.suppress(Empty):
                self._wake.get(timeout=seconds)
                self._wake.put(None)  # for the next waiting thread
        return self._is_set


def exit_after(stop: StopSignal, *, seconds: float) -> None:
    """Exit the process `seconds` after the stop signal, whatever it still waits for.

    There is no other way out of a call to a server that accepts a query and never answers. Its items are then those of
    a killed worker.
    """
    threading.Thread(target=_exit_after, args=(stop, seconds), name="exit", daemon=True).start()


def _exit_after(stop: StopSignal, seconds: float) -> None:
    while not stop.wait(DAY_SECONDS):
        pass
    time.sleep(seconds)
    logger.warning("process exits while still waiting for a server")
    os._exit(0)
