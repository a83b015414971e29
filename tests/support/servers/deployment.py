"""Real worker and sweeper processes on the test database: started, stopped and killed as in a deployment."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import connection

from batches.models import Batch, BatchItem, Worker
from relaybatch.quickstart.servers.watchdog_process import WatchdogProcess

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
DEADLINE_SECONDS = 40.0


class Process:
    """One process of the deployment. `stop` sends SIGTERM and waits, `kill` sends SIGKILL."""

    def __init__(self, guarded: WatchdogProcess, name: str) -> None:
        self._guarded = guarded
        self.name = name

    @property
    def pid(self) -> int:
        return self._guarded.pid

    @property
    def is_alive(self) -> bool:
        return self._guarded.is_alive

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def stop(self) -> int:
        return self._guarded.stop()

    def kill(self) -> None:
        self._guarded.kill()

    def log(self) -> str:
        return self._guarded.log.read_text(errors="replace")


class Deployment:
    """Ends all its processes at the end, also of a failed test. `environment` is set for every process."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._environment = deployment_environment() | environment
        self._processes: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.signal(signal.SIGCONT)
            process.kill()
        connection.close()

    def worker(self, *, ready: bool = True, **environment: str) -> Process:
        """Start a Celery worker by the Procfile; wait until its row exists, unless `ready` is False."""
        process = self._start("worker", procfile_command("worker"), environment)
        if ready:
            wait_until(lambda: self._has_row(process), process.log)
        return process

    def sweeper(self, **environment: str) -> Process:
        return self._start("sweeper", procfile_command("sweeper"), environment)

    def start(self, name: str, **environment: str) -> Process:
        """Start any process of the Procfile, without waiting."""
        return self._start(name, procfile_command(name), environment)

    def _start(self, name: str, command: list[str], environment: dict[str, str]) -> Process:
        log = self._folder / f"{name}-{len(self._processes)}.log"
        guarded = WatchdogProcess(
            command,
            log=log,
            stop_steps="TERM:30",
            environment=self._environment | environment,
            directory=ROOT,
        )
        process = Process(guarded, name)
        self._processes.append(process)
        return process

    def _has_row(self, process: Process) -> bool:
        assert process.is_alive, process.log()
        return Worker.objects.filter(pid=process.pid).exists()


def procfile_command(name: str) -> list[str]:
    lines = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines())
    program, *rest = lines[name].split()
    return [str(Path(sys.executable).with_name(program)), *rest]


def wait_until(
    condition: Callable[[], bool], describe: Callable[[], str], *, seconds: float = DEADLINE_SECONDS
) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {describe()}")
        time.sleep(0.02)


def wait_for_end(*batches: Batch, seconds: float = DEADLINE_SECONDS) -> None:
    ids = [batch.id for batch in batches]
    wait_until(
        lambda: not Batch.objects.filter(id__in=ids, ended_at=None).exists(),
        lambda: f"{BatchItem.objects.counts_by_batch(ids)}",
        seconds=seconds,
    )
    for batch in batches:
        batch.refresh_from_db()


def deployment_environment() -> dict[str, str]:
    database = connection.settings_dict
    url = f"postgresql://{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    return dict(os.environ) | {
        "DATABASE_URL": url,
        "REDIS_URL": settings.REDIS_URL,
        "RELAY_BATCH_PAYLOAD_DIR": str(settings.RELAY_BATCH_PAYLOAD_DIR),
        "RELAY_WORKER_LOST_S": "3",
        "RELAY_SHUTDOWN_GRACE_S": "3",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
