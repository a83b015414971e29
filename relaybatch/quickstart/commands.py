"""Running `manage.py` and reading what it says."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from relaybatch.quickstart.errors import QuickstartError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from relaybatch.quickstart.interruption import Interruption

LOOK_SECONDS = 0.1


def manage(*arguments: str, root: Path, environment: Mapping[str, str], interruption: Interruption) -> str:
    """What the command wrote to stdout; `QuickstartError` with its last line on stderr when it failed."""
    command = subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=root,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = _finished(command, interruption)
    finally:
        command.kill()
        command.communicate()
    if command.returncode != 0:
        last = (errors.strip().splitlines() or ["it said nothing"])[-1]
        raise QuickstartError(f"manage.py {arguments[0]} failed: {last}")
    return output


def _finished(command: subprocess.Popen[str], interruption: Interruption) -> tuple[str, str]:
    while True:
        try:
            return command.communicate(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            interruption.check()
