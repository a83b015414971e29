"""A deployment for the benchmarks: servers of its own that sync to disk, an upstream, and the Procfile's processes."""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import os
import secrets
import shlex
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

from bench.figures import BenchError
from bench.web import Web, is_healthy
from relaybatch.quickstart import procfile
from relaybatch.quickstart.servers.private_servers import Servers, delete_home_data, private_servers
from relaybatch.quickstart.servers.processes import clean_environment, free_port
from relaybatch.quickstart.servers.watchdog_process import WatchdogProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[1]
DEPLOYMENT_VARIABLES = (
    *("RELAY_", "PUBLIC_URL", "HTTPS_ONLY", "LOG_", "ALLOWED_HOSTS", "CSRF_", "GUNICORN_"),
    *("DATABASE_URL", "REDIS_URL", "SECRET_KEY"),
)
"""Variables of the user's environment that must not change what is measured, unless they are given by `--set`."""
READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class BenchDeployment:
    """`worker_arguments` are added to the Procfile's `worker` line."""

    home: Path
    servers: Servers
    upstream: UpstreamProcess
    worker_arguments: tuple[str, ...]
    _catalog: list[SimpleNamespace] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def catalog(self) -> SimpleNamespace:
        """The catalog's rows, created on first access: they need the settings, and those need the servers."""
        from tests.support.rows.catalog import make_catalog

        if not self._catalog:
            self._catalog.append(make_catalog(self.upstream.url))
        return self._catalog[0]

    @contextlib.contextmanager
    def start_web(self, *, processes: int | None = 1) -> Iterator[Web]:
        """`processes`: one, so that its memory can be measured; None = as many as the Procfile's line starts."""
        port = free_port()
        workers = f" --workers={processes}" if processes else ""
        with self._process("web", GUNICORN_CMD_ARGS=f"--bind=127.0.0.1:{port}{workers}") as process:
            _wait_until(lambda: is_healthy(port), process)
            yield Web(port, process.pid, self.catalog.headers)

    @contextlib.contextmanager
    def start_worker(
        self, *, slots: int | None = None, command: tuple[str, ...] = (), **environment: str
    ) -> Iterator[WatchdogProcess]:
        """`slots`: RELAY_BATCH_CONCURRENCY, if not the setting's. `command`: in place of the Procfile's `celery`."""
        from batches.models import Worker

        if slots is not None:
            environment["RELAY_BATCH_CONCURRENCY"] = str(slots)
        with self._process("worker", *self.worker_arguments, command=command, **environment) as process:
            _wait_until(Worker.objects.filter(pid=process.pid).exists, process)
            yield process

    @contextlib.contextmanager
    def start_workers(self, slots: Sequence[int]) -> Iterator[list[WatchdogProcess]]:
        """Start as many `worker` lines as there are numbers of slots."""
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self.start_worker(slots=count)) for count in slots]

    @contextlib.contextmanager
    def start_sweeper(self) -> Iterator[WatchdogProcess]:
        with self._process("sweeper") as process:
            yield process

    @contextlib.contextmanager
    def _process(
        self, name: str, *arguments: str, command: tuple[str, ...] = (), **environment: str
    ) -> Iterator[WatchdogProcess]:
        program, *rest = procfile.commands(ROOT / "Procfile")[name]
        process = WatchdogProcess(
            [*(command or (program,)), *rest, *arguments],
            log=self.home / "logs" / f"{name}-{next(self._numbers)}.log",
            stop_steps="TERM:20",
            environment={**os.environ, **environment},
            directory=ROOT,
        )
        try:
            yield process
        finally:
            process.stop()


class UpstreamProcess:
    def __init__(self, home: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = WatchdogProcess(
            [sys.executable, "-m", "bench.upstream", "--port", str(self.port)],
            log=home / "logs" / "upstream.log",
            stop_steps="TERM:5",
            environment=clean_environment(),
            directory=ROOT,
        )
        _wait_until(self._is_up, self.process)

    def _is_up(self) -> bool:
        try:
            return bool(self.stats())
        except OSError:
            return False

    def stats(self, *, reset: bool = False) -> dict[str, Any]:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)) as connection:
            connection.request("GET", "/seen?reset" if reset else "/seen")
            stats: dict[str, Any] = json.loads(connection.getresponse().read())
        return stats


@contextlib.contextmanager
def start_deployment(*, worker_arguments: str, settings: dict[str, str]) -> Iterator[BenchDeployment]:
    """Start servers and upstream, and create the tables. Everything is deleted at the end."""
    home = Path(tempfile.mkdtemp(prefix="relaybatch-bench-"))
    try:
        with private_servers(home, durable=True) as servers:
            os.environ.update(_environment(home, servers) | settings)
            _migrate()
            upstream = UpstreamProcess(home)
            try:
                yield BenchDeployment(home, servers, upstream, tuple(shlex.split(worker_arguments)))
            finally:
                upstream.process.stop()
                _close_connection()
    finally:
        delete_home_data(home)
        shutil.rmtree(home, ignore_errors=True)


def _environment(home: Path, servers: Servers) -> dict[str, str]:
    for name in [name for name in os.environ if name.startswith(DEPLOYMENT_VARIABLES)]:
        del os.environ[name]
    return {
        "SECRET_KEY": secrets.token_urlsafe(48),
        "RELAY_MASTER_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "ALLOWED_HOSTS": "127.0.0.1",
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        "RELAY_BATCH_PAYLOAD_DIR": str(home / "payloads"),
        "RELAY_SHUTDOWN_GRACE_S": "3",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH') or os.defpath}",
    }


def _migrate() -> None:
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0, interactive=False)


def _close_connection() -> None:
    from django.db import connection

    connection.close()


def _wait_until(condition: Callable[[], bool], process: WatchdogProcess) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not condition():
        if not process.is_alive or time.monotonic() > deadline:
            raise BenchError(f"not ready: {process.log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
