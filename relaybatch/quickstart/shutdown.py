"""Detect when to stop: on a signal, or when the `make` that started this process ends."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from relaybatch.stop_signal import StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

POLL_INTERVAL_SECONDS = 0.1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Raised to stop the program. Not an `Exception`, so that no error handler catches it."""


class Shutdown:
    """A request to stop: the first signal asks for a clean stop, the second one for a quick one.

    Only `sleep` and `raise_if_requested` raise `Stopped`. Between them the program is never interrupted, so that
    everything it started is known to the code that stops it.
    """

    def __init__(self) -> None:
        self._requested = StopSignal()
        self._second_signal_action: Callable[[], None] = lambda: None
        self._make = MakeProcess.parent()

    def install_handlers(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    def on_second_signal(self, action: Callable[[], None]) -> None:
        """Set what the second signal does. It runs in the signal handler and must not block."""
        self._second_signal_action = action

    def raise_if_requested(self) -> None:
        if self._requested.is_set() or (self._make and self._make.is_ending()):
            raise Stopped

    def sleep(self, seconds: float = POLL_INTERVAL_SECONDS) -> None:
        self.raise_if_requested()
        self._requested.wait(seconds)
        self.raise_if_requested()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._requested.is_set():
            self._second_signal_action()
        self._requested.set()


class MakeProcess:
    """The parent process if it is `make`. A signal sent to `make` alone does not reach us, and `make` waits for us."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._caught_sigint = _catches_sigint(pid)

    @classmethod
    def parent(cls) -> MakeProcess | None:
        return cls(os.getppid()) if "MAKELEVEL" in os.environ else None

    def is_ending(self) -> bool:
        """Whether it is gone, or got a SIGINT: then its handler is the default again while it waits for us."""
        if os.getppid() != self._pid:
            return True
        return self._caught_sigint and not _catches_sigint(self._pid)


def _catches_sigint(pid: int) -> bool:
    """Whether the process handles SIGINT, by Linux' /proc. False elsewhere: then only its end is noticed."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) & (1 << (signal.SIGINT - 1)))
    return False
