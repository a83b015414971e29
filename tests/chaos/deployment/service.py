"""A process of the deployment that can be killed, stopped, frozen and started again."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING

from relaybatch.quickstart.servers.watchdog_process import WatchdogProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

STOP_STEPS = "TERM:12"


class Service:
    """`kind`: its name in the Procfile. `started_at`: monotonic time when the current process started."""

    def __init__(
        self,
        kind: str,
        number: int,
        *,
        command: Sequence[str],
        environment: Mapping[str, str],
        root: Path,
        logs: Path,
    ) -> None:
        self.kind = kind
        self.name = f"{kind} {number}"
        self.log = logs / f"{kind}-{number}.log"
        self.started_at = 0.0
        self._command = command
        self._environment = environment
        self._root = root
        self._process: WatchdogProcess | None = None
        self._stopping: list[WatchdogProcess] = []

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._process.pid if self._process else 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_alive

    @property
    def is_stopping(self) -> bool:
        """Whether a process that was asked to stop still runs."""
        self._stopping = [process for process in self._stopping if process.is_alive]
        return bool(self._stopping)

    @property
    def has_exited(self) -> bool:
        return self._process is not None and not self._process.is_alive

    def start(self) -> None:
        self._process = WatchdogProcess(
            self._command,
            log=self.log,
            stop_steps=STOP_STEPS,
            environment=self._environment,
            directory=self._root,
        )
        self.started_at = time.monotonic()

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process = None

    def terminate(self) -> None:
        """Send SIGTERM without waiting."""
        if self._process:
            self._process.request_stop()
            self._stopping.append(self._process)
            self._process = None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """End it and its predecessors, in any state, and wait."""
        self.thaw()
        self.terminate()
        for process in self._stopping:
            process.wait()

    def _signal(self, number: signal.Signals) -> None:
        """Signal the whole process group: gunicorn's master and its worker."""
        if self._process and self._process.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
