"""When to stop: a signal, or the end of the `make` that started us."""

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

LOOK_SECONDS = 0.1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Not an `Exception`: nothing on the way may take it for a failure."""


class Interruption:
    """The first signal asks for a clean stop, a second one for a quick one. Nothing is cut off in the middle.

    `pause` and `check` raise `Stopped`; between them the program is never interrupted, so whatever was started is
    known to whoever has to end it.
    """

    def __init__(self) -> None:
        self._asked = StopSignal()
        self._hurry: Callable[[], None] = lambda: None
        self._make = Make.that_started_us()

    def listen(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    def when_in_a_hurry(self, action: Callable[[], None]) -> None:
        """What the second signal does; it runs in the signal handler and must not wait."""
        self._hurry = action

    def check(self) -> None:
        if self._asked.is_set() or (self._make and self._make.is_ending()):
            raise Stopped

    def pause(self, seconds: float = LOOK_SECONDS) -> None:
        self.check()
        self._asked.wait(seconds)
        self.check()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._asked.is_set():
            self._hurry()
        self._asked.set()


class Make:
    """The `make` above us. A signal sent to it alone does not reach us, and it waits for us to end."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._caught_interrupts = _catches_interrupts(pid)

    @classmethod
    def that_started_us(cls) -> Make | None:
        return cls(os.getppid()) if "MAKELEVEL" in os.environ else None

    def is_ending(self) -> bool:
        """It is gone, or it got an interrupt: then its handler is back at the default while it waits for us."""
        if os.getppid() != self._pid:
            return True
        return self._caught_interrupts and not _catches_interrupts(self._pid)


def _catches_interrupts(pid: int) -> bool:
    """From Linux' /proc; False where there is none, and the end of `make` is then all that is noticed."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) & (1 << (signal.SIGINT - 1)))
    return False
