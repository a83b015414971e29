"""Faults of the payload store: its folder is not mounted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.faults.schedule import Fault, FaultSchedule

NOTHING_WRITTEN = "nothing is written to the mount point while the payload folder is not mounted"


class PayloadFaults:
    def __init__(self, deployment: ChaosDeployment, schedule: FaultSchedule, findings: Findings) -> None:
        self._folder = deployment.payloads
        self._schedule = schedule
        self._findings = findings

    def weights(self) -> dict[Fault, int]:
        return {self._unmount: 2}

    def _unmount(self) -> bool:
        """As a volume that is not mounted: the folder exists and is empty, also for processes that start then."""
        if not self._folder.exists() or not self._schedule.start(
            "payloads", name="payload folder not mounted"
        ):
            return False
        self._folder.rename(self._folder.with_name("elsewhere"))
        self._folder.mkdir(mode=0o700)
        self._schedule.after(self._schedule.rng.uniform(0.3, 2), self._mount)
        return True

    def _mount(self) -> None:
        written = sorted(str(path.relative_to(self._folder)) for path in self._folder.rglob("*"))
        self._findings.record(NOTHING_WRITTEN, *written)
        self._folder.rename(self._folder.with_name(f"wrong-{time.monotonic_ns()}"))
        self._folder.with_name("elsewhere").rename(self._folder)
        self._schedule.end("payloads")
