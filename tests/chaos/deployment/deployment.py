"""A deployment for a run: servers, an upstream and processes of its own, in a folder of its own."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import secrets
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from relaybatch.quickstart import procfile
from relaybatch.quickstart.demo.run_step import run_step
from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.private_servers import Servers, delete_home_data, private_servers
from relaybatch.quickstart.servers.processes import free_port
from tests.chaos.deployment.catalog import OWNERS, catalog
from tests.chaos.deployment.service import Service
from tests.chaos.deployment.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from relaybatch.quickstart.shutdown import Shutdown

ROOT = Path(__file__).resolve().parents[3]
DEPLOYMENT_VARIABLES = (
    *("RELAY_", "PUBLIC_URL", "HTTPS_ONLY", "LOG_", "ALLOWED_HOSTS", "CSRF_", "GUNICORN_"),
    *("DATABASE_URL", "REDIS_URL", "SECRET_KEY"),
)
"""Variables of the user's environment that must not reach this deployment."""
LOST_SECONDS = 3
ITEM_SECONDS = 6
GRACE_SECONDS = 2
SLOTS = 8
PROCESSES_PER_KIND = 2
READY_SECONDS = 60.0
INLINE_BYTES = ("16384", "0")
"""Of every second process: responses live in the database and in the payload store, whoever reads them."""
SESSION_NAME = "chaos"
"""Application name of the checks' own database sessions, which are not terminated by faults."""


@dataclass(frozen=True, slots=True)
class Credential:
    key_id: str
    headers: dict[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChaosDeployment:
    home: Path
    servers: Servers
    upstream: Upstream
    environment: Mapping[str, str] = field(repr=False)
    credentials: Mapping[str, Credential]
    services: tuple[Service, ...]
    web_ports: tuple[int, ...]

    @property
    def payloads(self) -> Path:
        return self.home / "payloads"

    def of_kind(self, kind: str) -> list[Service]:
        return [service for service in self.services if service.kind == kind]

    def database(self, *, seconds: int = 5) -> psycopg.Connection[tuple[object, ...]]:
        """Open a session for the checks. Raises psycopg's OperationalError while the server is down."""
        return psycopg.connect(
            self.servers.database_url, application_name=SESSION_NAME, autocommit=True, connect_timeout=seconds
        )


@contextlib.contextmanager
def start_deployment(home: Path, *, seed: int, shutdown: Shutdown) -> Iterator[ChaosDeployment]:
    """Start everything and wait until it is ready. All processes end with the block; the folder stays (delete_home)."""
    with contextlib.ExitStack() as closing:
        servers = closing.enter_context(private_servers(home, durable=True))
        upstream = Upstream(seed=seed)
        upstream.start()
        closing.callback(upstream.stop)
        environment = _environment(home, servers)
        credentials = _prepare(home, upstream, environment, shutdown)
        ports = tuple(free_port() for _ in range(PROCESSES_PER_KIND))
        services = _services(home, environment, ports)
        deployment = ChaosDeployment(home, servers, upstream, environment, credentials, services, ports)
        closing.callback(_end_all, services)
        for service in services:
            service.start()
        _wait_until_ready(deployment, shutdown)
        yield deployment


def delete_home(home: Path) -> None:
    delete_home_data(home)
    shutil.rmtree(home, ignore_errors=True)


def _environment(home: Path, servers: Servers) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DEPLOYMENT_VARIABLES)}
    return kept | {
        "SECRET_KEY": secrets.token_urlsafe(48),
        "RELAY_MASTER_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "ALLOWED_HOSTS": "127.0.0.1",
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        "RELAY_BATCH_PAYLOAD_DIR": str(home / "payloads"),
        "RELAY_BATCH_CONCURRENCY": str(SLOTS),
        "RELAY_WORKER_LOST_S": str(LOST_SECONDS),
        "RELAY_BATCH_ITEM_TIMEOUT_S": str(ITEM_SECONDS),
        "RELAY_SHUTDOWN_GRACE_S": str(GRACE_SECONDS),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH') or os.defpath}",
    }


def _prepare(
    home: Path, upstream: Upstream, environment: Mapping[str, str], shutdown: Shutdown
) -> dict[str, Credential]:
    path = home / "catalog.json"
    path.write_text(json.dumps(catalog(upstream.ports)))
    output = run_step(
        "database",
        [sys.executable, "-m", "tests.chaos.deployment.prepare", str(path), *OWNERS],
        root=ROOT,
        environment=environment,
        shutdown=shutdown,
    )
    return {
        owner: Credential(key["id"], {"Authorization": f"Bearer {key['key']}"})
        for owner, key in json.loads(output).items()
    }


def _services(home: Path, environment: Mapping[str, str], ports: tuple[int, ...]) -> tuple[Service, ...]:
    (home / "logs").mkdir(exist_ok=True)
    commands = procfile.commands(ROOT / "Procfile")
    return tuple(
        Service(
            kind,
            number,
            command=command,
            environment={
                **environment,
                "GUNICORN_CMD_ARGS": f"--bind=127.0.0.1:{port} --workers=1",
                "RELAY_BATCH_INLINE_RESPONSE_BYTES": INLINE_BYTES[number % 2],
            },
            root=ROOT,
            logs=home / "logs",
        )
        for kind, command in commands.items()
        for number, port in enumerate(ports, start=1)
    )


def _end_all(services: tuple[Service, ...]) -> None:
    """Stop all of them at the same time."""
    for service in services:
        service.thaw()
        service.terminate()
    for service in services:
        service.end()


def _wait_until_ready(deployment: ChaosDeployment, shutdown: Shutdown) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not (all(map(_answers, deployment.web_ports)) and count_workers(deployment) == PROCESSES_PER_KIND):
        exited = [service.name for service in deployment.services if service.has_exited]
        if exited or time.monotonic() > deadline:
            raise QuickstartError(
                f"not ready: {', '.join(exited) or 'it takes too long'}, see {deployment.home}/logs"
            )
        shutdown.sleep(0.1)


def count_workers(deployment: ChaosDeployment) -> int:
    with deployment.database() as database:
        return len(database.execute("SELECT id FROM batches_worker").fetchall())


def _answers(port: int) -> bool:
    with (
        contextlib.suppress(OSError, http.client.HTTPException),
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as client,
    ):
        client.request("GET", "/readyz")
        return client.getresponse().status == 200
    return False
