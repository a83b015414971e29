"""Run a command of the demo that ends by itself."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from relaybatch.quickstart.errors import QuickstartError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from relaybatch.quickstart.shutdown import Shutdown

POLL_INTERVAL_SECONDS = 0.1


def run_step(
    step: str,
    command: Sequence[str],
    *,
    root: Path,
    environment: Mapping[str, str],
    shutdown: Shutdown,
) -> str:
    """Run the command and return its stdout. Raises QuickstartError with its last line on stderr if it failed."""
    process = subprocess.Popen(
        command,
        cwd=root,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="backslashreplace",
        start_new_session=True,
    )
    try:
        output, errors = _wait_for_exit(process, shutdown)
    finally:
        process.kill()
        process.communicate()
    if process.returncode != 0:
        last = (errors.strip().splitlines() or ["no message on stderr"])[-1]
        raise QuickstartError(f"{step}: {last}")
    return output


def _wait_for_exit(process: subprocess.Popen[str], shutdown: Shutdown) -> tuple[str, str]:
    while True:
        try:
            return process.communicate(timeout=POLL_INTERVAL_SECONDS)
        except subprocess.TimeoutExpired:
            shutdown.raise_if_requested()
