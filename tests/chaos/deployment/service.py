"""One process of the deployment, as whoever harms it sees it: to be killed, stopped, continued, started again."""

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
    """`kind` is the Procfile's name. `started_at`: of the process that runs now, on the monotonic clock."""

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
        """0 while none runs."""
        return self._process.pid if self._process else 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_alive

    @property
    def is_stopping(self) -> bool:
        """Whether a process that was asked to stop is still there."""
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
        """SIGTERM, without waiting."""
        if self._process:
            self._process.request_stop()
            self._stopping.append(self._process)
            self._process = None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Whatever state it is in, it and its predecessors are gone on return."""
        self.thaw()
        self.terminate()
        for process in self._stopping:
            process.wait()

    def _signal(self, number: signal.Signals) -> None:
        """To the whole group: gunicorn's master and worker, not one of them."""
        if self._process and self._process.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
