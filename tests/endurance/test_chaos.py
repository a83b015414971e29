"""`make chaos` runs, reports what it did, leaves nothing behind, and stops on a signal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.servers.deployment import ROOT, wait_until

COMMAND = [sys.executable, "-m", "tests.chaos", "--json"]
# Read by Django, and connected to by nobody.
UNUSED = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}


def environment(folder: Path) -> dict[str, str]:
    return dict(os.environ) | UNUSED | {"SECRET_KEY": "unused", "TMPDIR": str(folder)}


def test_a_few_seconds_of_chaos_violate_nothing_and_leave_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [*COMMAND, "--seconds", "4", "--seed", "4"],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    report = json.loads(ran.stdout)
    assert [one for one in report["invariants"] if one["violations"]] == []
    assert ran.returncode == 0
    assert (report["seed"], report["violations"], report["home"]) == (4, 0, None)
    assert report["done"]
    assert len(report["invariants"]) > 20
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_ends_all_that_chaos_started(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--seconds", "600"],
        cwd=ROOT,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        assert "starting" in process.stderr.readline()
        wait_until(lambda: any(tmp_path.glob("*/logs/worker-1.log")), lambda: "no worker was started")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in command_lines()


def command_lines() -> str:
    """Command lines of all processes, if the system has /proc."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(lines)
