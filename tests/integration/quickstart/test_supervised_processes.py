"""The order in which the demo's processes stop."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from relaybatch.quickstart.demo.supervised_processes import SupervisedProcesses
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from pathlib import Path

# Each writes a file when it is ready, and another one when it has been told to stop; the worker takes a moment.
PROCESS = """
import pathlib, signal, sys, time
folder, name, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
def stop(*_):
    (folder / f"{name}-told").write_text(repr((folder / "worker-exits").exists()))
    time.sleep(seconds)
    (folder / f"{name}-exits").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
(folder / f"{name}-ready").touch()
while True:
    signal.pause()
"""


def test_the_upstream_is_told_to_stop_when_the_worker_has_exited(tmp_path: Path) -> None:
    processes = SupervisedProcesses(home=tmp_path, directory=tmp_path, grace_seconds=5)
    try:
        for name, seconds in (("echo", "0"), ("worker", "0.5")):
            command = [sys.executable, "-c", PROCESS, str(tmp_path), name, seconds]
            processes.start(name, command, environment={}, stop_last=name == "echo")
        wait_until(
            lambda: all((tmp_path / f"{name}-ready").exists() for name in ("echo", "worker")),
            lambda: "not ready",
        )
    finally:
        processes.stop()
    assert [(tmp_path / f"{name}-told").read_text() for name in ("worker", "echo")] == ["False", "True"]
