"""Measure processor time and memory of processes, PostgreSQL statements and Redis commands."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis

# Parts of our own statements and their names in the table; the first match counts.
STATEMENTS = {
    "settled AS": "settle",
    "pg_try_advisory_xact_lock_shared": "group lock",
    "pg_advisory_xact_lock": "settle's lock",
    "claim_no = i.claim_no +": "claim",
    "WITH room AS": "publish: mark",
    'FROM "batches_owner"': "publish: owner's lock",
    "BEGIN": "begin",
    "COMMIT": "commit",
    "batches_worker": "owner window and heartbeat",
    "routing_": "routing, kept for 0.5 s",
    "SELECT $1": "connection check",
}


def cpu_seconds(pid: int) -> float:
    """Processor time of the process and its descendants, also of those that have exited."""
    root = psutil.Process(pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def machine_cpu_seconds() -> float:
    """Processor time of all processes of this machine since its start."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


class Memory:
    """Peak growth of a process's memory. None if the system does not report the peak."""

    def __init__(self, pid: int) -> None:
        self._proc = Path(f"/proc/{pid}")
        self._before: int | None = None

    def begin(self) -> None:
        """Reset the peak (Linux 4.0 and later)."""
        with contextlib.suppress(OSError):
            (self._proc / "clear_refs").write_text("5")
            self._before = self._status("VmRSS")

    def growth_bytes(self) -> int | None:
        return None if self._before is None else self._status("VmHWM") - self._before

    def _status(self, name: str) -> int:
        lines = (self._proc / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


class Statements:
    """Statements by the names in STATEMENTS, from pg_stat_statements; empty if the server lacks it."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT setting LIKE '%pg_stat_statements%' FROM pg_settings "
                "WHERE name = 'shared_preload_libraries'"
            )
            self._available = bool(cursor.fetchone()[0])
            if self._available:
                cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def begin(self) -> None:
        if self._available:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_stat_statements_reset()")

    def counts(self) -> dict[str, tuple[int, float]]:
        """`{name: (calls, milliseconds in the server)}`, most calls first."""
        found: dict[str, tuple[int, float]] = {}
        for query, calls, milliseconds in self._rows():
            name = _name(query)
            before = found.get(name, (0, 0.0))
            found[name] = (before[0] + calls, before[1] + milliseconds)
        return dict(sorted(found.items(), key=lambda pair: -pair[1][0]))

    def calls(self) -> dict[str, int]:
        """`{statement: calls}`, without our own."""
        return {query: calls for query, calls, _ in self._rows() if "pg_stat_" not in query}

    def _rows(self) -> list[tuple[str, int, float]]:
        if not self._available:
            return []
        with connection.cursor() as cursor:
            cursor.execute("SELECT query, calls, total_exec_time FROM pg_stat_statements")
            return list(cursor.fetchall())


def _name(query: str) -> str:
    return next((name for part, name in STATEMENTS.items() if part in query), "other")


def redis_commands(client: redis.Redis) -> dict[str, int]:
    """Number of Redis commands so far, by name."""
    stats: Mapping[str, Any] = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): int(row["calls"]) for name, row in stats.items()}
