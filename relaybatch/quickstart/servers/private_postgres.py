"""A private PostgreSQL server: created if missing, on a free port of 127.0.0.1; it ends with this process."""

import contextlib
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.postgres_location import PostgresLocation, prepare_location
from relaybatch.quickstart.servers.processes import clean_environment, end_orphan, free_port, log_file
from relaybatch.quickstart.servers.watchdog_process import WatchdogProcess

START_SECONDS = 30.0
MAX_START_TRIES = 5
POLL_INTERVAL_SECONDS = 0.01
STATUS_LINE = 7
"""Index of the line of `postmaster.pid` that says `ready`."""
BUILTIN_LOCALES_SINCE = 17
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "dynamic_shared_memory_type": "mmap",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}
"""`synchronous_commit` stays on: without it, a killed server loses commits that it had confirmed."""


class PrivatePostgres:
    """Can be stopped or killed, and started again on the same port and data."""

    def __init__(self, home: Path, *, durable: bool, sleep: Callable[[float], None] = time.sleep) -> None:
        """`sleep` is called while `start` waits. If it raises, `start` ends, and `stop` must be called."""
        self._sleep = sleep
        self._home = home
        self._durable = durable
        self._process: WatchdogProcess | None = None
        self._password = ""
        self.port = 0

    @property
    def url(self) -> str:
        return f"postgresql://postgres:{self._password}@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the private PostgreSQL is not running")
        return self._process.pid

    def start(self) -> None:
        """Start and wait until it is ready. A second start, after `stop` or `kill`, uses the same port."""
        location = prepare_location(self._home)
        version = major_version(location.binaries)
        self._password = _load_password(self._home / "postgres.password")
        end_orphan(location.data / "postmaster.pid", marks=("postgres",))
        if not location.data.exists():
            self._create_cluster(location, version=version)
        _require_version(location, version=version)
        self._start_on_free_port(location)

    def stop(self) -> None:
        """Fast shutdown: sessions are terminated, data is flushed."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _start_on_free_port(self, location: PostgresLocation) -> None:
        """Try other ports if another program took ours; on a restart the same, while a killed server's children end."""
        kept_port = self.port
        for _ in range(MAX_START_TRIES):
            self.port = kept_port or free_port()
            self._process = self._launch(location)
            if self._wait_until_ready(self._process, location):
                return
            self.stop()
            self._sleep(0.2)
        self.port = kept_port
        raise QuickstartError(f"the private PostgreSQL did not start: see {log_file(self._home, 'postgres')}")

    def _create_cluster(self, location: PostgresLocation, *, version: int) -> None:
        """Create the cluster under another name and rename it once it is complete."""
        unfinished = location.folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        with _password_file(location, self._password) as password_file:
            self._process = WatchdogProcess(
                [
                    *_initdb_command(location.binaries, version=version),
                    "-D",
                    str(unfinished),
                    f"--pwfile={password_file}",
                ],
                log=log_file(self._home, "initdb"),
                stop_steps="TERM:2",
                environment=clean_environment(),
                account=location.account,
            )
            while self._process.is_alive:
                self._sleep(POLL_INTERVAL_SECONDS)
            if self._process.stop() != 0:
                log = self._process.log
                raise QuickstartError(f"the private PostgreSQL's data could not be made: see {log}")
        unfinished.rename(location.data)

    def _launch(self, location: PostgresLocation) -> WatchdogProcess:
        settings = SETTINGS | ({} if self._durable else NOT_DURABLE) | {"port": str(self.port)}
        if _has_statement_statistics(location.binaries):
            settings["shared_preload_libraries"] = "pg_stat_statements"
        flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
        return WatchdogProcess(
            [str(location.binaries / "postgres"), "-D", str(location.data), *flags],
            log=log_file(self._home, "postgres"),
            stop_steps="INT:6,QUIT:3",
            environment=clean_environment(),
            account=location.account,
        )

    def _wait_until_ready(self, process: WatchdogProcess, location: PostgresLocation) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.is_alive:
            with contextlib.suppress(OSError, IndexError):
                lines = (
                    (location.data / "postmaster.pid")
                    .read_text(encoding="utf-8", errors="replace")
                    .splitlines()
                )
                if lines[0].strip() == str(process.pid) and lines[STATUS_LINE].strip() == "ready":
                    return True
            self._sleep(POLL_INTERVAL_SECONDS)
        return False


def major_version(binaries: Path) -> int:
    output = subprocess.run(
        [binaries / "postgres", "--version"],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
    )
    found = re.search(r"\b(\d+)(?:\.|beta|rc|devel)", output.stdout)
    if not found:
        reason = output.stderr.strip().splitlines()[-1:] or ["no version shown"]
        raise QuickstartError(
            f"{binaries / 'postgres'} does not run ({reason[0]}): set PG_BIN or DATABASE_URL"
        )
    return int(found[1])


def _load_password(path: Path) -> str:
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(24))
    return path.read_text()


def _initdb_command(binaries: Path, *, version: int) -> list[str]:
    builtin = (
        ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if version >= BUILTIN_LOCALES_SINCE else []
    )
    program = str(binaries / "initdb")
    return [program, "-U", "postgres", "-E", "UTF8", *builtin, "--locale=C", "-A", "scram-sha-256"]


@contextlib.contextmanager
def _password_file(location: PostgresLocation, password: str) -> Iterator[Path]:
    path = location.folder / "password"
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(password)
    if location.account:
        os.chown(path, location.account.uid, location.account.gid)
    try:
        yield path
    finally:
        path.unlink()


def _require_version(location: PostgresLocation, *, version: int) -> None:
    found = (location.data / "PG_VERSION").read_text().strip()
    if found != str(version):
        raise QuickstartError(
            f"{location.data} was made by PostgreSQL {found} and this is {version}: "
            "set PG_BIN to that version, RELAYBATCH_HOME to another directory, or remove the data"
        )


def _has_statement_statistics(binaries: Path) -> bool:
    return any(binaries.parent.glob("lib/**/pg_stat_statements.*"))
