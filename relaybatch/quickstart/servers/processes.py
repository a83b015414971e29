"""Ports, process ids and log files of what the quickstart starts."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

ORPHAN_STOP_STEPS = ((signal.SIGINT, 5.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 3.0))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clean_environment() -> dict[str, str]:
    """Environment of the servers, without the user's locale, time zone and PG… variables."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def log_file(home: Path, name: str) -> Path:
    folder = home / "logs"
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder / f"{name}.log"


def command_line(pid: int) -> str:
    """The process's command line, empty if there is none. Small images lack `ps`, macOS lacks /proc."""
    if Path("/proc/self/cmdline").exists():
        with contextlib.suppress(OSError):
            return (
                Path(f"/proc/{pid}/cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
                .strip()
            )
        return ""
    output = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return output.stdout.strip()


def is_process_running(pid: int) -> bool:
    """Whether it runs. False for a zombie too: some containers' init never reaps them."""
    line = command_line(pid)
    return bool(line) and not line.startswith("(") and "<defunct>" not in line


def is_pid_in_use(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def read_pid(path: Path) -> int | None:
    """The number in a pid file's first line; None if there is none."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        number = int(path.read_text(encoding="utf-8", errors="replace").splitlines()[0])
        return number if number > 1 else None
    return None


def end_orphan(pid_file: Path, *, marks: tuple[str, ...]) -> None:
    """End a server that a killed demo left running on this directory, if its command line shows that it is ours.

    A pid file without a valid pid, or with that of another program by now, is deleted: a server would refuse to start.
    If the process is gone, the file is left for the server, which replaces it.
    """
    pid = read_pid(pid_file)
    if pid is not None:
        line = command_line(pid)
        if str(pid_file.parent) in line and any(mark in line for mark in marks):
            end_process(pid)
        if not is_pid_in_use(pid):
            return
    pid_file.unlink(missing_ok=True)


def end_process(pid: int) -> None:
    for number, seconds in ORPHAN_STOP_STEPS:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while is_process_running(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        if not is_process_running(pid):
            return
