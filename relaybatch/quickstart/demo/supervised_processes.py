"""Start, check and stop the demo's processes together."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.processes import log_file
from relaybatch.quickstart.servers.watchdog_process import WatchdogProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SETTLE_SECONDS = 5.0
"""How long a worker may take after its grace to settle the items that it aborted."""


class SupervisedProcesses:
    """Processes in sessions of their own, so that Ctrl-C reaches only the demo, and that end with the demo."""

    def __init__(self, *, home: Path, directory: Path, grace_seconds: float) -> None:
        self._home = home
        self._directory = directory
        self._stop_steps = f"TERM:{grace_seconds + SETTLE_SECONDS}"
        self._running: dict[str, WatchdogProcess] = {}
        self._stop_last: set[str] = set()

    def start(
        self, name: str, command: Sequence[str], *, environment: Mapping[str, str], stop_last: bool = False
    ) -> None:
        if stop_last:
            self._stop_last.add(name)
        try:
            self._running[name] = WatchdogProcess(
                command,
                log=log_file(self._home, name),
                stop_steps=self._stop_steps,
                environment=environment,
                directory=self._directory,
            )
        except OSError as problem:
            raise QuickstartError(f"{name} {problem}") from None

    def raise_if_exited(self) -> None:
        """Raise QuickstartError if one of them has exited."""
        for name, process in self._running.items():
            if not process.is_alive:
                raise QuickstartError(f"{name} ended by itself: see {process.log}")

    def stop(self) -> None:
        """Stop all of them at the same time, and then those that stop last; returns when all have exited."""
        for is_last in (False, True):
            stopping = [
                process for name, process in self._running.items() if (name in self._stop_last) is is_last
            ]
            for process in stopping:
                process.request_stop()
            for process in stopping:
                process.wait()

    def kill(self) -> None:
        """Send SIGKILL to all without waiting, after a second Ctrl-C. `stop` must still follow."""
        for process in self._running.values():
            if process.is_alive:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
