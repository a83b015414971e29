"""The private PostgreSQL and Redis: started, stopped, killed, and started again on their data."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.private_servers import (
    PrivatePostgres,
    PrivateRedis,
    delete_home_data,
    private_servers,
)
from relaybatch.quickstart.servers.processes import command_line, is_process_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[3]
PARENT = """
import sys, time
from pathlib import Path
from relaybatch.quickstart.servers.private_servers import private_servers
with private_servers(Path(sys.argv[1]), durable=False) as servers:
    print(servers.postgres.pid, servers.redis.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def own_binaries_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PG_BIN", raising=False)
    monkeypatch.delenv("REDIS_SERVER", raising=False)


@pytest.fixture(scope="module")
def used_home() -> Iterator[Path]:
    """A home that contains a cluster: to create one takes a second or two, to copy it no time."""
    folder = Path(tempfile.mkdtemp(prefix="relaybatch-used-home-"))
    with private_servers(folder, durable=False):
        pass
    yield folder
    delete_home_data(folder)
    shutil.rmtree(folder)


@pytest.fixture
def home(used_home: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="relaybatch-home-"))
    subprocess.run(["cp", "-a", f"{used_home}/.", str(folder)], check=True)
    yield folder
    delete_home_data(folder)
    shutil.rmtree(folder)


@pytest.fixture
def postgres(home: Path) -> Iterator[PrivatePostgres]:
    server = PrivatePostgres(home, durable=False)
    yield server
    server.stop()


def wait_until(condition: Callable[[], bool], *, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def answers(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def data_folder(server: PrivatePostgres) -> Path:
    with psycopg.connect(server.url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return Path(row[0])


def test_both_servers_answer_and_are_gone_afterwards(home: Path) -> None:
    with private_servers(home, durable=False) as servers:
        assert answers(servers.database_url)
        with redis.Redis.from_url(servers.redis_url) as client:
            assert client.ping()
        pids = (servers.postgres.pid, servers.redis.pid)
    assert not any(is_process_running(pid) for pid in pids)
    with pytest.raises(psycopg.OperationalError):
        answers(servers.database_url)


def test_a_stranger_without_the_password_is_refused(home: Path) -> None:
    with private_servers(home, durable=False) as servers:
        with (
            redis.Redis(port=servers.redis.port, retry=Retry(NoBackoff(), 0)) as client,
            pytest.raises(redis.AuthenticationError),
        ):
            client.ping()
        with pytest.raises(psycopg.OperationalError):
            answers(f"postgresql://postgres:@127.0.0.1:{servers.postgres.port}/postgres")


@pytest.mark.parametrize("way_down", ["stop", "kill"])
def test_a_restart_keeps_port_and_data(postgres: PrivatePostgres, way_down: str) -> None:
    postgres.start()
    before = postgres.url
    with psycopg.connect(before) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
    getattr(postgres, way_down)()
    postgres.start()
    assert postgres.url == before
    with psycopg.connect(before) as connection:
        assert connection.execute("SELECT value FROM kept").fetchone() == (7,)


@pytest.mark.parametrize("way_down", ["stop", "kill"])
def test_redis_restarts_empty_on_its_port(home: Path, way_down: str) -> None:
    server = PrivateRedis(home)
    server.start()
    try:
        before = server.url
        with redis.Redis.from_url(before) as client:
            client.set("a", "b")
        getattr(server, way_down)()
        server.start()
        assert server.url == before
        with redis.Redis.from_url(before) as client:
            assert client.get("a") is None
    finally:
        server.stop()


def test_a_killed_parent_leaves_no_server(home: Path) -> None:
    parent = start_parent(home)
    pids = pids_of(parent)
    parent.kill()
    parent.communicate()
    wait_until(lambda: not any(is_process_running(pid) for pid in pids), seconds=5)


def test_a_parent_that_is_stopped_with_a_signal_leaves_no_server(home: Path) -> None:
    parent = start_parent(home)
    pids = pids_of(parent)
    parent.send_signal(signal.SIGTERM)
    parent.communicate()
    wait_until(lambda: not any(is_process_running(pid) for pid in pids), seconds=5)


def test_a_second_run_in_a_home_is_refused_and_the_first_goes_on(home: Path) -> None:
    with private_servers(home, durable=False) as servers:
        with pytest.raises(QuickstartError, match="RELAYBATCH_HOME"), private_servers(home, durable=False):
            pass
        assert answers(servers.database_url)


@pytest.mark.parametrize("content", ["", "{pid}\n/somewhere\n", "not a number\n", "999999999\n"])
def test_a_stale_pid_file_is_no_obstacle(postgres: PrivatePostgres, content: str) -> None:
    postgres.start()
    pid_file = data_folder(postgres) / "postmaster.pid"
    postgres.kill()
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        pid_file.write_text(content.format(pid=stranger.pid))
        postgres.start()
        assert answers(postgres.url)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_live_server_left_on_the_data_is_ended_first(home: Path) -> None:
    first, second = PrivatePostgres(home, durable=False), PrivatePostgres(home, durable=False)
    first.start()
    left = first.pid
    try:
        second.start()
        assert not is_process_running(left)
        assert answers(second.url)
    finally:
        second.stop()
        first.stop()


def test_an_unfinished_cluster_is_created_anew(postgres: PrivatePostgres) -> None:
    postgres.start()
    folder = data_folder(postgres).parent
    postgres.stop()
    shutil.rmtree(folder / "data")
    (folder / "unfinished").mkdir()
    (folder / "unfinished" / "PG_VERSION").write_text("18\n")
    postgres.start()
    assert answers(postgres.url)
    assert sorted(path.name for path in folder.iterdir()) == ["data"]


def test_data_of_another_version_is_refused_with_the_mend(postgres: PrivatePostgres) -> None:
    postgres.start()
    version_file = data_folder(postgres) / "PG_VERSION"
    postgres.stop()
    version_file.write_text("15\n")
    with pytest.raises(QuickstartError, match="PG_BIN"):
        postgres.start()


@pytest.mark.parametrize(
    ("variable", "value"), [("PG_BIN", "/nonexistent/bin"), ("REDIS_SERVER", "/nonexistent")]
)
def test_binaries_that_are_not_there_are_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(QuickstartError, match=variable), private_servers(home, durable=False):
        pass


def test_other_binaries_can_be_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from relaybatch.quickstart.servers.postgres_location import postgres_binaries
    from relaybatch.quickstart.servers.private_redis import redis_server

    link = home / "my-redis-server"
    link.symlink_to(redis_server())
    monkeypatch.setenv("PG_BIN", str(postgres_binaries()))
    monkeypatch.setenv("REDIS_SERVER", str(link))
    with private_servers(home, durable=False) as servers:
        assert answers(servers.database_url)
        assert str(link) in command_line(servers.redis.pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root must run the server as another account")
def test_root_s_server_runs_as_another_account_also_from_folders_closed_to_it(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    inner = closed / "home"
    try:
        with private_servers(inner, durable=False) as servers:
            assert answers(servers.database_url)
            assert Path(f"/proc/{servers.postgres.pid}").stat().st_uid != 0
        with private_servers(inner, durable=False) as servers:
            assert answers(servers.database_url)
    finally:
        delete_home_data(inner)


def test_no_secret_is_readable_by_others(home: Path) -> None:
    with private_servers(home, durable=False):
        secrets = [home / "postgres.password", home / "redis.conf"]
        assert [oct(path.stat().st_mode & 0o777) for path in secrets] == ["0o600", "0o600"]


def start_parent(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, str(home)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


def pids_of(parent: subprocess.Popen[str]) -> list[int]:
    assert parent.stdout is not None
    with contextlib.suppress(ValueError):
        return [int(word) for word in parent.stdout.readline().split()]
    raise AssertionError("the parent did not start its servers")
