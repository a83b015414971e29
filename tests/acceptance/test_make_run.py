"""`make run` as a user sees it: the real command, its output, and what is left when it ends."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import requests

from relaybatch.quickstart.servers.private_servers import delete_home_data
from relaybatch.quickstart.servers.processes import free_port
from relaybatch.server.bind_addresses import LOOPBACK, usable_binds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120
STOP_SECONDS = 15
"""The promise is 5 s; a machine that runs other tests at the same time may need more."""
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
OF_THIS_RUN = (
    "DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "ALLOWED_HOSTS",
    "LOG_FORMAT",
    "MAKELEVEL",
    "MAKEFLAGS",
)


class MakeRun:
    """A running `make run` in a process group of its own, like a command of an interactive shell."""

    def __init__(self, home: Path, *, port: int | None = None, **environment: str) -> None:
        self.port = port or free_port()
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in OF_THIS_RUN and not name.startswith(("RELAY_", "PYTEST_", "DJANGO_"))
        }
        self.environment = kept | {
            "RELAYBATCH_HOME": str(home),
            "PORT": str(self.port),
            "VIRTUAL_ENV": sys.prefix,
            **environment,
        }
        self.make = subprocess.Popen(
            ["make", "run"],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.output = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.make.stdout is not None
        for line in self.make.stdout:
            self.output += line

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        found = re.search(r"^key +(sk-rb-\S+)$", self.output, re.MULTILINE)
        assert found, self.output
        return found[1]

    def wait_until_serving(self) -> None:
        self.wait_for_output("\nlogs ")

    def wait_for_output(self, text: str) -> None:
        wait_until(lambda: text in self.output or self.make.poll() is not None, seconds=START_SECONDS)
        assert text in self.output, self.output

    def wait_for_exit(self, *, seconds: float) -> int:
        try:
            status = self.make.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still there: {living(self.processes())}\n{self.output}") from None
        self._reader.join()
        return status

    def processes(self) -> list[psutil.Process]:
        top = psutil.Process(self.make.pid)
        return [top, *top.children(recursive=True)]

    def end(self) -> None:
        """For a test that failed; gentle first, so that the servers go too."""
        if self.make.poll() is None:
            os.killpg(self.make.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.make.wait(30)
        if self.make.poll() is None:
            os.killpg(self.make.pid, signal.SIGKILL)
        self._reader.join()
        assert self.make.stdout is not None
        self.make.stdout.close()


@pytest.fixture
def start() -> Iterator[Callable[..., MakeRun]]:
    with contextlib.ExitStack() as closing:

        def begin(home: Path, *, port: int | None = None, **environment: str) -> MakeRun:
            run = MakeRun(home, port=port, **environment)
            closing.callback(run.end)
            return run

        yield begin


@pytest.fixture
def homes() -> Iterator[tuple[Path, Path]]:
    pair = (new_home(), new_home("relaybatch-青空-"))
    yield pair
    for home in pair:
        delete_home_data(home)
        shutil.rmtree(home)


def new_home(prefix: str = "relaybatch-run-") -> Path:
    return Path(tempfile.mkdtemp(prefix=prefix))


def living(processes: list[psutil.Process]) -> list[str]:
    """Not those that only their parent has not collected."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


def wait_until_gone(processes: list[psutil.Process], *, seconds: float) -> None:
    wait_until(lambda: not living(processes), seconds=seconds)


def wait_until(condition: Callable[[], bool], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def batches_of(run: MakeRun) -> int:
    answer = requests.get(
        f"{run.url}/v1/batches?dialect=relay", headers={"Authorization": f"Bearer {run.key}"}, timeout=10
    )
    return len(answer.json()["batches"])


def test_from_nothing_to_results_and_to_nothing_again(
    start: Callable[..., MakeRun], homes: tuple[Path, Path]
) -> None:
    run = start(homes[0])
    run.wait_until_serving()

    assert "30/30 items: 30 completed" in run.output
    assert "You said: What is the capital of France?" in run.output
    assert re.search(r"^total +30 +30 completed +\d+ +0\.\d{6} USD$", run.output, re.MULTILINE)
    assert "unpriced" not in run.output
    assert_the_printed_line_submits_a_batch(run)
    assert_the_printed_login_opens_the_admin(run)
    for place in usable_binds(LOOPBACK, port=run.port):
        assert requests.get(f"http://{place}/admin/login/", timeout=10).status_code == 200

    processes = run.processes()
    os.killpg(run.make.pid, signal.SIGINT)
    run.wait_for_exit(seconds=STOP_SECONDS)
    wait_until_gone(processes, seconds=STOP_SECONDS)
    assert not listens(run.port)
    assert run.output.rstrip().endswith("stopped")


def assert_the_printed_line_submits_a_batch(run: MakeRun) -> None:
    line = re.search(r"^try +(curl .*)$", run.output, re.MULTILINE)
    assert line
    if shutil.which("curl"):
        output = subprocess.run(["sh", "-c", f"{line[1]} -s"], capture_output=True, text=True, check=True)
        assert '"status":"queued"' in output.stdout.replace(" ", "")


def assert_the_printed_login_opens_the_admin(run: MakeRun) -> None:
    login = re.search(r"^admin +(\S+) +first login: (\S+) / (\S+)$", run.output, re.MULTILINE)
    assert login
    url, name, password = login.groups()
    with requests.Session() as session:
        page = session.get(f"{url}login/", timeout=10)
        form = {
            "username": name,
            "password": password,
            "csrfmiddlewaretoken": session.cookies["csrftoken"],
            "next": "/admin/",
        }
        opened = session.post(page.url, data=form, headers={"Referer": page.url}, timeout=10)
        assert opened.url == url
        assert opened.ok
        assert session.get(f"{run.url}/static/admin/css/base.css", timeout=10).ok


@pytest.mark.endurance
def test_two_live_side_by_side_and_a_second_start_finds_what_the_first_left(
    start: Callable[..., MakeRun], homes: tuple[Path, Path]
) -> None:
    """The other says what ASCII can of a folder of any name."""
    first, other = start(homes[0]), start(homes[1], **ASCII)
    first.wait_until_serving()
    other.wait_until_serving()
    assert first.key != other.key
    assert batches_of(first) == batches_of(other) == 3
    assert "30/30 items: 30 completed" in other.output
    assert "relaybatch-\\udce9" in other.output

    processes = first.processes()
    first.make.send_signal(signal.SIGINT)
    first.wait_for_exit(seconds=STOP_SECONDS)
    wait_until_gone(processes, seconds=STOP_SECONDS)

    again = start(homes[0])
    again.wait_until_serving()
    assert again.key == first.key
    assert batches_of(again) == 6
    assert batches_of(other) == 3

    assert_two_interrupts_leave_nothing(other)
    assert_a_kill_leaves_nothing(again)


def assert_two_interrupts_leave_nothing(run: MakeRun) -> None:
    processes = run.processes()
    os.killpg(run.make.pid, signal.SIGINT)
    wait_until(lambda: len(living(processes)) < len(processes), seconds=STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.make.pid, signal.SIGINT)
    wait_until_gone(processes, seconds=STOP_SECONDS)


def assert_a_kill_leaves_nothing(run: MakeRun) -> None:
    processes = run.processes()
    os.killpg(run.make.pid, signal.SIGKILL)
    wait_until_gone(processes, seconds=STOP_SECONDS)


@pytest.mark.parametrize(
    ("sign_of_life", "number"),
    [("server", signal.SIGINT), ("migrating", signal.SIGTERM), ("process", signal.SIGINT)],
)
def test_a_signal_while_it_starts_leaves_nothing(
    start: Callable[..., MakeRun], homes: tuple[Path, Path], sign_of_life: str, number: signal.Signals
) -> None:
    run = start(homes[0])
    run.wait_for_output(sign_of_life)
    processes = run.processes()
    os.killpg(run.make.pid, number)
    run.wait_for_exit(seconds=STOP_SECONDS)
    wait_until_gone(processes, seconds=STOP_SECONDS)
    assert "Traceback" not in run.output, run.output


def test_what_cannot_work_is_said_in_a_line_with_its_mend(
    start: Callable[..., MakeRun], homes: tuple[Path, Path]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert said(start(homes[0], port=port)) == [
            f"port {port} cannot be used (Address already in use): set PORT to another"
        ]
    file = homes[0] / "file"
    file.touch()
    [line] = said(start(file / "home"))
    assert "RELAYBATCH_HOME" in line
    [line] = said(start(homes[0], port=123456))
    assert line == "PORT is '123456': set it to a number from 1 to 65535"


def said(run: MakeRun) -> list[str]:
    assert run.wait_for_exit(seconds=START_SECONDS) != 0
    return [line for line in run.output.splitlines() if not line.startswith("make")]
