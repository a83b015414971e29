"""Memory, threads and descriptors of the processes, and the database's sessions: bounded, however long it went on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from tests.chaos.deployment.deployment import EACH_KIND, SLOTS

if TYPE_CHECKING:
    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.deployment import Place
    from tests.chaos.deployment.service import Service

WARM_SECONDS = 25.0
"""Until a process has surely loaded what it needs, even one that was stopped meanwhile: growth counts from then."""
MIB = 1 << 20
MOST_GROWTH_BYTES = 60 * MIB
MOST_MEMORY_BYTES = 250 * MIB
WEB_THREADS = 8
MOST_THREADS = {"web": 2 * WEB_THREADS + 12, "worker": 2 * SLOTS + 12, "sweeper": 8}
"""Obstore's runtime has a thread for each of ours that reads or writes a file, for ten seconds."""
MOST_DESCRIPTORS = {"web": 90, "worker": 120, "sweeper": 40}
# Two threads' worth for each readiness probe, and as much again while old and new processes are side by side.
MOST_SESSIONS = 2 * EACH_KIND * ((WEB_THREADS + 1 + 4) + (SLOTS + 3) + 1)


@dataclass(frozen=True, slots=True)
class Size:
    pid: int
    memory_bytes: int
    threads: int
    descriptors: int


class Sizes:
    """`note` now and then: the first size of each process after it got warm is kept."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._first: dict[int, Size] = {}

    def note(self) -> None:
        for service in self._place.services:
            if service.runs and time.monotonic() - service.started_at > WARM_SECONDS:
                size = _size(service)
                if size and size.pid not in self._first:
                    self._first[size.pid] = size

    def check(self, findings: Findings, *, most_sessions: int) -> None:
        for service in self._place.services:
            size = _size(service)
            if size is None:
                findings.look("every process is there at the end", service.name)
                continue
            findings.look("every process is there at the end")
            self._check_one(service, size, findings)
        over = [f"{most_sessions} of {MOST_SESSIONS}"] if most_sessions > MOST_SESSIONS else []
        findings.look("database sessions are bounded", *over)
        findings.notes["most database sessions"] = f"{most_sessions} (bound {MOST_SESSIONS})"

    def _check_one(self, service: Service, size: Size, findings: Findings) -> None:
        growth = size.memory_bytes - self._first.get(size.pid, size).memory_bytes
        age = time.monotonic() - service.started_at
        findings.notes[f"{service.name}, {age:.0f} s old"] = (
            f"{size.memory_bytes // MIB} MiB (+{growth // MIB}), {size.threads} threads, "
            f"{size.descriptors} descriptors"
        )
        for name, is_over in (
            ("memory of long-lived processes does not grow", growth > MOST_GROWTH_BYTES),
            ("memory is bounded", size.memory_bytes > MOST_MEMORY_BYTES),
            ("threads are bounded", size.threads > MOST_THREADS[service.kind]),
            ("descriptors and sockets are bounded", size.descriptors > MOST_DESCRIPTORS[service.kind]),
        ):
            findings.look(name, *([f"{service.name}: {size}, grown by {growth}"] if is_over else []))


def _size(service: Service) -> Size | None:
    """Of gunicorn the worker, which does the work; `pid` is then its own too."""
    if not service.runs:
        return None
    try:
        process = psutil.Process(service.pid)
        if service.kind == "web":
            process = process.children()[-1]
        with process.oneshot():
            memory, threads = process.memory_info().rss, process.num_threads()
        return Size(process.pid, memory, threads, process.num_fds())
    except (psutil.Error, IndexError):
        return None
