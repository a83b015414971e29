"""Run one command and end it when stdin closes: `watchdog.py --log FILE --stop INT:5,QUIT:2 [--user U:G] -- COMMAND`.

The process that starts it holds the other end of stdin. It closes stdin to stop the command; when it is killed, the
kernel closes stdin, with the same effect. The command's pid is the only line on stdout. The watchdog exits with the
command's exit status. It uses the standard library only, and runs with `-I -S` so that it starts in milliseconds.
"""

import argparse
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    arguments = _parse()
    wakeup = _wake_on_signals()
    child = _start(arguments)
    print(child.pid, flush=True)
    with contextlib.suppress(OSError):
        os.close(sys.stdout.fileno())
    _wait_for_end_of_stdin_or_child(child, wakeup)
    if child.poll() is None:
        _stop(child, stop=arguments.stop, wakeup=wakeup)
    _kill_group(child)
    return child.wait()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True, type=Path)
    parser.add_argument("--stop", required=True, type=_steps)
    parser.add_argument("--user", type=_user)
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def _steps(text: str) -> list[tuple[signal.Signals, float]]:
    pairs = (step.split(":") for step in text.split(","))
    return [(signal.Signals[f"SIG{name}"], float(seconds)) for name, seconds in pairs]


def _user(text: str) -> dict[str, object]:
    uid, gid = text.split(":")
    return {"user": int(uid), "group": int(gid), "extra_groups": []}


def _wake_on_signals() -> int:
    """Return a descriptor that becomes readable on SIGCHLD, so that no polling is needed."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(ignored, lambda *_: None)
    return reading


def _start(arguments: argparse.Namespace) -> "subprocess.Popen[bytes]":
    with arguments.log.open("ab") as log:
        return subprocess.Popen(
            arguments.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            **(arguments.user or {}),
        )


def _wait_for_end_of_stdin_or_child(child: "subprocess.Popen[bytes]", wakeup: int) -> None:
    stdin = sys.stdin.fileno()
    while child.poll() is None:
        readable, _, _ = select.select([stdin, wakeup], [], [])
        if stdin in readable and not os.read(stdin, 64):
            return
        _drain(wakeup)


def _stop(child: "subprocess.Popen[bytes]", *, stop: list[tuple[signal.Signals, float]], wakeup: int) -> None:
    for number, seconds in stop:
        child.send_signal(number)
        deadline = time.monotonic() + seconds
        while child.poll() is None and (left := deadline - time.monotonic()) > 0:
            select.select([wakeup], [], [], left)
            _drain(wakeup)
        if child.returncode is not None:
            return
    child.kill()


def _drain(wakeup: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(wakeup, 1024)


def _kill_group(child: "subprocess.Popen[bytes]") -> None:
    """Kill what the command started in its session and left running."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
