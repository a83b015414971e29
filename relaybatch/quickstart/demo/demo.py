"""Run the demo: start servers and processes, run the example batches, and serve until Ctrl-C."""

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
from relaybatch.quickstart.demo.client import DemoClient
from relaybatch.quickstart.demo.demo_secrets import DemoSecrets, load_secrets, save_relay_key
from relaybatch.quickstart.demo.environment import demo_environment
from relaybatch.quickstart.demo.names import ADMIN_NAME, ADMIN_PASSWORD_VARIABLE, RELAY_KEY_VARIABLE
from relaybatch.quickstart.demo.run_examples import print_line, run_examples
from relaybatch.quickstart.demo.run_step import run_step
from relaybatch.quickstart.demo.supervised_processes import SupervisedProcesses
from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.private_servers import PrivatePostgres, PrivateRedis, locked_home
from relaybatch.quickstart.servers.processes import free_port
from relaybatch.server.bind_addresses import port_error

if TYPE_CHECKING:
    from relaybatch.quickstart.shutdown import Shutdown

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
READY_SECONDS = 60.0
ECHO_DELAY_MS = "200"
"""Long enough to see the progress."""


def run_demo(*, home: Path, port: int, shutdown: Shutdown) -> None:
    """Run until it raises `Stopped` or `QuickstartError`. Everything that it started has ended by then."""
    require_free_port(port)
    with contextlib.ExitStack() as closing:
        closing.enter_context(locked_home(home))
        secrets = load_secrets(home)
        demo = Demo(
            home=home,
            base_url=f"http://127.0.0.1:{port}",
            secrets=secrets,
            environment=demo_environment(os.environ, home=home, port=port, secrets=secrets),
            shutdown=shutdown,
        )
        demo.start_servers(closing)
        processes = demo.supervise(closing)
        relay_key = demo.prepare(processes)
        for name, command in procfile.commands(ROOT / "Procfile").items():
            shutdown.raise_if_requested()
            print_line(f"process    {name}: {' '.join(command)}")
            processes.start(name, command, environment=demo.environment)
        demo.run_examples(processes, relay_key=relay_key)
        while True:
            processes.raise_if_exited()
            shutdown.sleep()


def require_free_port(port: int) -> None:
    if reason := port_error(port):
        raise QuickstartError(f"port {port} cannot be used ({reason}): set PORT to another")


@dataclass(frozen=True, slots=True)
class Demo:
    home: Path
    base_url: str
    secrets: DemoSecrets
    environment: dict[str, str]
    """Completed by `start_servers`."""
    shutdown: Shutdown

    def start_servers(self, closing: contextlib.ExitStack) -> None:
        """Start a private server for each address that is not in the environment."""
        closing.callback(print_line, "stopped")
        pause = self.shutdown.sleep
        for variable, what, server in (
            ("DATABASE_URL", "PostgreSQL", PrivatePostgres(self.home, durable=True, sleep=pause)),
            ("REDIS_URL", "Redis", PrivateRedis(self.home, sleep=pause)),
        ):
            self.shutdown.raise_if_requested()
            if named := [name for name in (f"{variable}_FILE", variable) if self.environment.get(name)]:
                print_line(f"server     {what} of {named[0]}")
                continue
            print_line(f"server     a private {what} in {self.home}")
            closing.callback(server.stop)
            server.start()
            self.environment[variable] = server.url

    def supervise(self, closing: contextlib.ExitStack) -> SupervisedProcesses:
        grace_seconds = float(self.environment.get("RELAY_SHUTDOWN_GRACE_S") or 30)
        processes = SupervisedProcesses(home=self.home, directory=ROOT, grace_seconds=grace_seconds)
        closing.callback(processes.stop)
        self.shutdown.on_second_signal(processes.kill)
        return processes

    def prepare(self, processes: SupervisedProcesses) -> str:
        """Start the echo upstream; create tables, catalog, admin and relay key unless they exist. Returns the key."""
        echo_port = free_port()
        print_line(f"upstream   an echo server on port {echo_port}")
        echo = [sys.executable, "-m", "relaybatch.quickstart.demo.echo_upstream", "--port", str(echo_port)]
        environment = {"ECHO_DELAY_MS": ECHO_DELAY_MS} | self.environment
        # It stops last, so that the calls of a worker that is stopping still get their answers.
        processes.start("echo", echo, environment=environment, stop_last=True)
        print_line("database   migrating, and loading examples/catalog.yaml")
        catalog = self.home / "catalog.json"
        echo_url = f"http://127.0.0.1:{echo_port}"
        write_catalog(catalog, examples=EXAMPLES, echo_url=echo_url, environment=self.environment)
        secret_variables = {
            ADMIN_PASSWORD_VARIABLE: self.secrets.admin_password,
            RELAY_KEY_VARIABLE: self.secrets.relay_key,
        }
        relay_key = run_step(
            "database",
            [sys.executable, "-m", "relaybatch.quickstart.demo.prepare_database", str(catalog)],
            root=ROOT,
            environment=self.environment | secret_variables,
            shutdown=self.shutdown,
        ).strip()
        save_relay_key(self.home, relay_key=relay_key)
        return relay_key

    def run_examples(self, processes: SupervisedProcesses, *, relay_key: str) -> None:
        """Run the example batches, and print how to go on."""
        with contextlib.closing(DemoClient(self.base_url, relay_key=relay_key)) as client:
            self._wait_until_ready(client, processes)
            run_examples(client, examples=EXAMPLES, shutdown=self.shutdown, check=processes.raise_if_exited)
        lines = report.next_steps(
            base_url=self.base_url,
            relay_key=relay_key,
            admin=(ADMIN_NAME, self.secrets.admin_password),
            logs=self.home / "logs",
        )
        print_line("\n".join(lines))

    def _wait_until_ready(self, client: DemoClient, processes: SupervisedProcesses) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not client.is_ready():
            processes.raise_if_exited()
            if time.monotonic() > deadline:
                raise QuickstartError(
                    f"web is not ready after {READY_SECONDS:.0f} s: see {self.home / 'logs'}"
                )
            self.shutdown.sleep()
