"""A private PostgreSQL: made when missing, started on a free port of 127.0.0.1, stopped with its holder."""

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
from relaybatch.quickstart.servers.postgres_home import Place, find_place
from relaybatch.quickstart.servers.processes import clean_environment, end_orphan, free_port, log_file
from relaybatch.quickstart.servers.watchdog_process import GuardedProcess

START_SECONDS = 30.0
START_TRIES = 5
LOOK_SECONDS = 0.01
STATUS_LINE = 7
"""Counted from 0: the line of `postmaster.pid` that says `ready`."""
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
"""`synchronous_commit` stays on: without it a killed server forgets what it had confirmed."""


class PrivatePostgres:
    """Start, stop, kill and start again on the same port and data."""

    def __init__(self, home: Path, *, durable: bool, pause: Callable[[float], None] = time.sleep) -> None:
        """`pause` is called while `start` waits; what it raises ends the waiting, and `stop` is then due."""
        self._pause = pause
        self._home = home
        self._durable = durable
        self._process: GuardedProcess | None = None
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
        """Returns when it is ready. A second start, after `stop` or `kill`, takes the port of the first."""
        place = find_place(self._home)
        version = major_version(place.binaries)
        self._password = _kept_password(self._home / "postgres.password")
        end_orphan(place.data / "postmaster.pid", marks=("postgres",))
        if not place.data.exists():
            self._make_cluster(place, version=version)
        _refuse_other_version(place, version=version)
        self._start_on_a_port(place)

    def stop(self) -> None:
        """A fast shutdown: sessions are cut off, data is flushed."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _start_on_a_port(self, place: Place) -> None:
        """Another port when a stranger took ours meanwhile; the same again while a killed server's children end."""
        kept_port = self.port
        for _ in range(START_TRIES):
            self.port = kept_port or free_port()
            self._process = self._launch(place)
            if self._becomes_ready(self._process, place):
                return
            self.stop()
            self._pause(0.2)
        self.port = kept_port
        raise QuickstartError(f"the private PostgreSQL did not start: see {log_file(self._home, 'postgres')}")

    def _make_cluster(self, place: Place, *, version: int) -> None:
        """In a folder of another name, renamed when whole: a half-made cluster is never taken for a cluster."""
        half = place.folder / "half-made"
        shutil.rmtree(half, ignore_errors=True)
        with _password_file(place, self._password) as password_file:
            self._process = GuardedProcess(
                [*_initdb(place.binaries, version=version), "-D", str(half), f"--pwfile={password_file}"],
                log=log_file(self._home, "initdb"),
                stop_steps="TERM:2",
                environment=clean_environment(),
                account=place.account,
            )
            while self._process.alive:
                self._pause(LOOK_SECONDS)
            if self._process.stop() != 0:
                log = self._process.log
                raise QuickstartError(f"the private PostgreSQL's data could not be made: see {log}")
        half.rename(place.data)

    def _launch(self, place: Place) -> GuardedProcess:
        settings = SETTINGS | ({} if self._durable else NOT_DURABLE) | {"port": str(self.port)}
        if _has_statement_statistics(place.binaries):
            settings["shared_preload_libraries"] = "pg_stat_statements"
        flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
        return GuardedProcess(
            [str(place.binaries / "postgres"), "-D", str(place.data), *flags],
            log=log_file(self._home, "postgres"),
            stop_steps="INT:6,QUIT:3",
            environment=clean_environment(),
            account=place.account,
        )

    def _becomes_ready(self, process: GuardedProcess, place: Place) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.alive:
            with contextlib.suppress(OSError, IndexError):
                lines = (
                    (place.data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
                )
                if lines[0].strip() == str(process.pid) and lines[STATUS_LINE].strip() == "ready":
                    return True
            self._pause(LOOK_SECONDS)
        return False


def major_version(binaries: Path) -> int:
    shown = subprocess.run(
        [binaries / "postgres", "--version"],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
    )
    found = re.search(r"\b(\d+)(?:\.|beta|rc|devel)", shown.stdout)
    if not found:
        reason = shown.stderr.strip().splitlines()[-1:] or ["no version shown"]
        raise QuickstartError(
            f"{binaries / 'postgres'} does not run ({reason[0]}): set PG_BIN or DATABASE_URL"
        )
    return int(found[1])


def _kept_password(path: Path) -> str:
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(24))
    return path.read_text()


def _initdb(binaries: Path, *, version: int) -> list[str]:
    builtin = (
        ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if version >= BUILTIN_LOCALES_SINCE else []
    )
    program = str(binaries / "initdb")
    return [program, "-U", "postgres", "-E", "UTF8", *builtin, "--locale=C", "-A", "scram-sha-256"]


@contextlib.contextmanager
def _password_file(place: Place, password: str) -> Iterator[Path]:
    path = place.folder / "password"
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(password)
    if place.account:
        os.chown(path, place.account.uid, place.account.gid)
    try:
        yield path
    finally:
        path.unlink()


def _refuse_other_version(place: Place, *, version: int) -> None:
    found = (place.data / "PG_VERSION").read_text().strip()
    if found != str(version):
        raise QuickstartError(
            f"{place.data} was made by PostgreSQL {found} and this is {version}: "
            "set PG_BIN to that version, RELAYBATCH_HOME to another directory, or remove the data"
        )


def _has_statement_statistics(binaries: Path) -> bool:
    return any(binaries.parent.glob("lib/**/pg_stat_statements.*"))
