"""Faults of our own processes: killed, replaced, frozen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.chaos.deployment.deployment import LOST_SECONDS

if TYPE_CHECKING:
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.deployment.service import Service
    from tests.chaos.faults.schedule import Fault, FaultSchedule

# A new process needs a moment before it is worth killing.
START_SECONDS = 3.0


class ProcessFaults:
    def __init__(self, deployment: ChaosDeployment, schedule: FaultSchedule) -> None:
        self._deployment = deployment
        self._schedule = schedule
        self._rng = schedule.rng

    def weights(self) -> dict[Fault, int]:
        return {self._kill: 10, self._terminate: 6, self._freeze: 8, self._kill_all_workers: 1}

    def _kill(self) -> bool:
        service = self._pick_service()
        if not self._schedule.start(service.name, name=f"{service.kind} killed"):
            return False
        service.kill()
        self._schedule.after(self._rng.uniform(0, 5), partial(self._restart, service))
        return True

    def _kill_all_workers(self) -> bool:
        workers = self._deployment.of_kind("worker")
        if self._schedule.spares_first or any(self._schedule.is_active(worker.name) for worker in workers):
            return False
        for worker in workers:
            self._schedule.start(worker.name, name="worker killed with all others")
            worker.kill()
            self._schedule.after(self._rng.uniform(0, 4), partial(self._restart, worker))
        return True

    def _terminate(self) -> bool:
        """As in a rolling deploy, the next process starts while the old one stops; a web process needs its port."""
        service = self._pick_service()
        if not self._schedule.start(service.name, name=f"{service.kind} SIGTERM and a new one"):
            return False
        service.terminate()
        self._restart(service)
        return True

    def _freeze(self) -> bool:
        """Mostly for longer than it takes to be declared lost."""
        workers = self._deployment.of_kind("worker")
        service = self._rng.choice([*self._deployment.services, *workers, *workers])
        if not self._schedule.start(service.name, name=f"{service.kind} SIGSTOP, SIGCONT"):
            return False
        service.freeze()
        self._schedule.after(self._rng.uniform(1, LOST_SECONDS * 3), partial(self._thaw, service))
        return True

    def _pick_service(self) -> Service:
        spares_first = self._schedule.spares_first
        return self._rng.choice(
            [each for each in self._deployment.services if not (spares_first and each.name.endswith("1"))]
        )

    def _restart(self, service: Service) -> None:
        if service.kind == "web" and service.is_stopping:
            self._schedule.after(0.1, partial(self._restart, service))
            return
        service.start()
        self._schedule.after(START_SECONDS, partial(self._schedule.end, service.name))

    def _thaw(self, service: Service) -> None:
        service.thaw()
        self._schedule.end(service.name)
