"""What the figures depend on most: processors and their load, the servers' durability, the disks and their syncs."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from django.conf import settings
from django.db import connection

from bench.measurements import cpu_seconds, machine_cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

SYNCS = 20


def describe() -> Iterator[str]:
    """Yield lines for the head of the table."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    yield f"machine    {os.cpu_count()} processors, load {load:.1f}, Python {platform.python_version()}"
    values = {
        name: _server_setting(name)
        for name in ("server_version", "fsync", "synchronous_commit", "data_directory")
    }
    yield (
        f"PostgreSQL {values['server_version']}, fsync {values['fsync']}, "
        f"synchronous_commit {values['synchronous_commit']}, on {_file_system(Path(values['data_directory']))}"
    )
    payloads = Path(settings.RELAY_BATCH_PAYLOAD_DIR)
    payloads.mkdir(exist_ok=True, mode=0o700)
    yield f"payloads   a directory on {_file_system(payloads)}, a sync there {_sync_ms(payloads):.2f} ms"


class MachineLoad:
    """How long something took, and how many processors other programs kept busy meanwhile."""

    def __init__(self) -> None:
        self._began, self._others = time.monotonic(), self._other_cpu_seconds()

    def summary(self) -> str:
        seconds = time.monotonic() - self._began
        others = max(0.0, self._other_cpu_seconds() - self._others) / seconds
        return f"{seconds:.0f} s, other programs on {others:.2f} of {os.cpu_count()} processors"

    def _other_cpu_seconds(self) -> float:
        return machine_cpu_seconds() - cpu_seconds(os.getpid())


def _server_setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [name])
        return str(cursor.fetchone()[0])


def _file_system(path: Path) -> str:
    """The type and the device of the file system, by the longest mount point above the path."""
    above = {str(part) for part in (path.resolve(), *path.resolve().parents)}
    mounts = [mount for mount in psutil.disk_partitions(all=True) if mount.mountpoint in above]
    if not mounts:
        return "an unknown file system"
    mount = max(mounts, key=lambda one: len(one.mountpoint))
    return f"{mount.fstype} ({mount.device})"


def _sync_ms(folder: Path) -> float:
    """Mean time of a sync of a growing file."""
    with tempfile.TemporaryFile(dir=folder) as file:
        began = time.perf_counter()
        for _ in range(SYNCS):
            file.write(b"x" * 1000)
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - began) * 1000 / SYNCS
