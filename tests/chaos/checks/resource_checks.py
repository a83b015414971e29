"""Limits on memory, threads and descriptors of the processes, and on database sessions, after a long run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from batches.execution.call_slots import threads_for
from tests.chaos.deployment.deployment import PROCESSES_PER_KIND, SLOTS

if TYPE_CHECKING:
    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.deployment.service import Service

WARM_UP_SECONDS = 25.0
"""When a process has loaded what it needs, even if it was stopped in between: growth counts from then."""
MIB = 1 << 20
MAX_GROWTH_BYTES = 60 * MIB
MAX_MEMORY_BYTES = 250 * MIB
WEB_THREADS = 8
MAX_THREADS = {"web": 2 * WEB_THREADS + 12, "worker": 2 * threads_for(SLOTS) + 12, "sweeper": 12}
"""Obstore's runtime keeps a thread for ten seconds for each of our threads that reads or writes a file."""
MAX_DESCRIPTORS = {"web": 90, "worker": 120, "sweeper": 40}
# Four sessions for the readiness checks of a web process; all of it twice, while old and new processes overlap.
MAX_SESSIONS = 2 * PROCESSES_PER_KIND * ((WEB_THREADS + 1 + 4) + (threads_for(SLOTS) + 4) + 1)


@dataclass(frozen=True, slots=True)
class ResourceUse:
    pid: int
    memory_bytes: int
    threads: int
    descriptors: int


class ResourceChecks:
    """`sample` repeatedly: the first measurement of each process after its warm-up is kept."""

    def __init__(self, deployment: ChaosDeployment) -> None:
        self._deployment = deployment
        self._first: dict[int, ResourceUse] = {}

    def sample(self) -> None:
        for service in self._deployment.services:
            if service.is_running and time.monotonic() - service.started_at > WARM_UP_SECONDS:
                use = _measure(service)
                if use and use.pid not in self._first:
                    self._first[use.pid] = use

    def check(self, findings: Findings, *, max_sessions: int) -> None:
        for service in self._deployment.services:
            use = _measure(service)
            if use is None:
                findings.record("every process is there at the end", service.name)
                continue
            findings.record("every process is there at the end")
            self._check_one(service, use, findings)
        over = [f"{max_sessions} of {MAX_SESSIONS}"] if max_sessions > MAX_SESSIONS else []
        findings.record("database sessions are bounded", *over)
        findings.notes["most database sessions"] = f"{max_sessions} (bound {MAX_SESSIONS})"

    def _check_one(self, service: Service, use: ResourceUse, findings: Findings) -> None:
        growth = use.memory_bytes - self._first.get(use.pid, use).memory_bytes
        age = time.monotonic() - service.started_at
        findings.notes[f"{service.name}, {age:.0f} s old"] = (
            f"{use.memory_bytes // MIB} MiB (+{growth // MIB}), {use.threads} threads, "
            f"{use.descriptors} descriptors"
        )
        for name, is_over in (
            ("memory of long-lived processes does not grow", growth > MAX_GROWTH_BYTES),
            ("memory is bounded", use.memory_bytes > MAX_MEMORY_BYTES),
            ("threads are bounded", use.threads > MAX_THREADS[service.kind]),
            ("descriptors and sockets are bounded", use.descriptors > MAX_DESCRIPTORS[service.kind]),
        ):
            findings.record(name, *([f"{service.name}: {use}, grown by {growth}"] if is_over else []))


def _measure(service: Service) -> ResourceUse | None:
    """Measure a process; of gunicorn its worker process, whose `pid` is returned then."""
    if not service.is_running:
        return None
    try:
        process = psutil.Process(service.pid)
        if service.kind == "web":
            process = process.children()[-1]
        with process.oneshot():
            memory, threads = process.memory_info().rss, process.num_threads()
        return ResourceUse(process.pid, memory, threads, process.num_fds())
    except (psutil.Error, IndexError):
        return None
