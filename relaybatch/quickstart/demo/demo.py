"""`make run`: everything on one machine, from nothing to a finished sample batch, until Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relaybatch.quickstart import procfile
from relaybatch.quickstart.demo import report
from relaybatch.quickstart.demo.catalog import write_catalog
from relaybatch.quickstart.demo.client import Client
from relaybatch.quickstart.demo.commands import output_of
from relaybatch.quickstart.demo.demo_secrets import KeptSecrets, keep_relay_key, kept_secrets
from relaybatch.quickstart.demo.environment import demo_environment
from relaybatch.quickstart.demo.names import ADMIN_NAME, ADMIN_PASSWORD_VARIABLE, RELAY_KEY_VARIABLE
from relaybatch.quickstart.demo.run_examples import run_samples, say
from relaybatch.quickstart.demo.supervised import SupervisedProcesses
from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.processes import free_port
from relaybatch.quickstart.servers.servers import PrivatePostgres, PrivateRedis, locked_home
from relaybatch.server.bind_addresses import why_not

if TYPE_CHECKING:
    from relaybatch.quickstart.shutdown import Interruption

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
READY_SECONDS = 60.0
ECHO_DELAY_MS = "200"
"""Long enough for the progress to be seen."""


def run_demo(*, home: Path, port: int, interruption: Interruption) -> None:
    """Never returns: `Stopped` ends it, or `QuickstartError`; what it started is gone by then."""
    refuse_taken_port(port)
    with contextlib.ExitStack() as closing:
        closing.enter_context(locked_home(home))
        kept = kept_secrets(home)
        demo = Demo(
            home=home,
            base_url=f"http://127.0.0.1:{port}",
            kept=kept,
            environment=demo_environment(os.environ, home=home, port=port, kept=kept),
            interruption=interruption,
        )
        demo.start_servers(closing)
        processes = demo.supervised(closing)
        relay_key = demo.prepare(processes)
        for name, command in procfile.commands(ROOT / "Procfile").items():
            interruption.check()
            say(f"process    {name}: {' '.join(command)}")
            processes.start(name, command, environment=demo.environment)
        demo.show(processes, relay_key=relay_key)
        while True:
            processes.check()
            interruption.pause()


def refuse_taken_port(port: int) -> None:
    if reason := why_not(port):
        raise QuickstartError(f"port {port} cannot be used ({reason}): set PORT to another")


@dataclass(frozen=True, slots=True)
class Demo:
    home: Path
    base_url: str
    kept: KeptSecrets
    environment: dict[str, str]
    """Completed by `start_servers`."""
    interruption: Interruption

    def start_servers(self, closing: contextlib.ExitStack) -> None:
        """A private one for each address that is not in the environment."""
        closing.callback(say, "stopped")
        pause = self.interruption.pause
        for variable, what, server in (
            ("DATABASE_URL", "PostgreSQL", PrivatePostgres(self.home, durable=True, pause=pause)),
            ("REDIS_URL", "Redis", PrivateRedis(self.home, pause=pause)),
        ):
            self.interruption.check()
            if named := [name for name in (f"{variable}_FILE", variable) if self.environment.get(name)]:
                say(f"server     {what} of {named[0]}")
                continue
            say(f"server     a private {what} in {self.home}")
            closing.callback(server.stop)
            server.start()
            self.environment[variable] = server.url

    def supervised(self, closing: contextlib.ExitStack) -> SupervisedProcesses:
        grace_seconds = float(self.environment.get("RELAY_SHUTDOWN_GRACE_S") or 30)
        processes = SupervisedProcesses(home=self.home, directory=ROOT, grace_seconds=grace_seconds)
        closing.callback(processes.stop)
        self.interruption.when_in_a_hurry(processes.kill)
        return processes

    def prepare(self, processes: SupervisedProcesses) -> str:
        """Echo upstream, tables, catalog, admin and relay key, which is returned. Nothing is made twice."""
        echo_port = free_port()
        say(f"upstream   an echo server on port {echo_port}")
        echo = [sys.executable, "-m", "relaybatch.quickstart.demo.echo_upstream", "--port", str(echo_port)]
        processes.start("echo", echo, environment={"ECHO_DELAY_MS": ECHO_DELAY_MS} | self.environment)
        say("database   migrating, and loading examples/catalog.yaml")
        catalog = self.home / "catalog.json"
        echo_url = f"http://127.0.0.1:{echo_port}"
        write_catalog(catalog, examples=EXAMPLES, echo_url=echo_url, environment=self.environment)
        secrets = {ADMIN_PASSWORD_VARIABLE: self.kept.admin_password, RELAY_KEY_VARIABLE: self.kept.relay_key}
        relay_key = output_of(
            "database",
            [sys.executable, "-m", "relaybatch.quickstart.demo.prepare_database", str(catalog)],
            root=ROOT,
            environment=self.environment | secrets,
            interruption=self.interruption,
        ).strip()
        keep_relay_key(self.home, relay_key=relay_key)
        return relay_key

    def show(self, processes: SupervisedProcesses, *, relay_key: str) -> None:
        """The sample batches from submission to results, and how to go on."""
        with contextlib.closing(Client(self.base_url, relay_key=relay_key)) as client:
            self._wait_until_ready(client, processes)
            run_samples(client, examples=EXAMPLES, interruption=self.interruption, check=processes.check)
        lines = report.closing(
            base_url=self.base_url,
            relay_key=relay_key,
            admin=(ADMIN_NAME, self.kept.admin_password),
            logs=self.home / "logs",
        )
        say("\n".join(lines))

    def _wait_until_ready(self, client: Client, processes: SupervisedProcesses) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not client.is_ready():
            processes.check()
            if time.monotonic() > deadline:
                raise QuickstartError(
                    f"web is not ready after {READY_SECONDS:.0f} s: see {self.home / 'logs'}"
                )
            self.interruption.pause()
