"""Faults of PostgreSQL: killed, all sessions terminated."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.faults.schedule import Fault, FaultSchedule

TARGET = "postgres"
_TERMINATE_SESSIONS = b"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name <> 'chaos' AND backend_type = 'client backend'
"""


class PostgresFaults:
    def __init__(self, deployment: ChaosDeployment, schedule: FaultSchedule) -> None:
        self._deployment = deployment
        self._schedule = schedule

    def weights(self) -> dict[Fault, int]:
        return {self._kill: 3, self._terminate_sessions: 4}

    def _kill(self) -> bool:
        if not self._schedule.start(TARGET, name="PostgreSQL killed"):
            return False
        self._deployment.servers.postgres.kill()
        self._schedule.after(self._schedule.rng.uniform(0, 4), self._restart)
        return True

    def _restart(self) -> None:
        self._deployment.servers.postgres.start()
        self._schedule.end(TARGET)

    def _terminate_sessions(self) -> bool:
        if self._schedule.is_active(TARGET):
            return False
        with self._deployment.database() as database:
            database.execute(_TERMINATE_SESSIONS)
        self._schedule.counts["all database sessions terminated"] += 1
        return True
