"""Parse the Procfile, which names the processes of a deployment."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def commands(path: Path) -> dict[str, list[str]]:
    """Return the command of each process by its name, in the order of the file."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    pairs = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {name.strip(): shlex.split(command) for name, _, command in pairs}
