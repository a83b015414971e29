"""Changes of catalog rows: relay keys, host keys and policies disabled for a moment, one relay key revoked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import psycopg

from tests.chaos.deployment.catalog import HOST_KEYS, OWNERS, POLICIES, REVOKED_OWNER
from tests.chaos.faults import postgres_faults

if TYPE_CHECKING:
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.faults.schedule import Fault, FaultSchedule

RETRY_SECONDS = 0.5
_REVOKE = b"UPDATE routing_relaykey SET revoked_at = now() WHERE id = %s"


class RowFaults:
    def __init__(self, deployment: ChaosDeployment, schedule: FaultSchedule) -> None:
        self._deployment = deployment
        self._schedule = schedule
        self._rng = schedule.rng

    def weights(self) -> dict[Fault, int]:
        return {self._disable: 6}

    def revoke_relay_key(self) -> bool:
        """Revoke one owner's key for good. False while PostgreSQL is down."""
        if self._schedule.is_active(postgres_faults.TARGET):
            return False
        with self._deployment.database() as database:
            database.execute(_REVOKE, [self._deployment.credentials[REVOKED_OWNER].key_id])
        self._schedule.counts["relay key revoked"] += 1
        return True

    def _disable(self) -> bool:
        table, name = self._rng.choice(
            [("routing_relaykey", owner) for owner in OWNERS]
            + [("routing_hostkey", name) for names in HOST_KEYS.values() for name in names]
            + [("routing_policy", name) for name in POLICIES]
        )
        if self._schedule.is_active(postgres_faults.TARGET):
            return False
        if not self._schedule.start(name, name=f"{table.removeprefix('routing_')} disabled"):
            return False
        self._set_enabled(table, name, enabled=False)
        self._schedule.after(self._rng.uniform(0.5, 3), partial(self._enable, table, name))
        return True

    def _enable(self, table: str, name: str) -> None:
        """Retried while PostgreSQL is down."""
        try:
            self._set_enabled(table, name, enabled=True)
        except psycopg.OperationalError:
            self._schedule.after(RETRY_SECONDS, partial(self._enable, table, name))
        else:
            self._schedule.end(name)

    def _set_enabled(self, table: str, name: str, *, enabled: bool) -> None:
        column, value = "name", name
        if table == "routing_relaykey":
            column, value = "id", self._deployment.credentials[name].key_id
        with self._deployment.database() as database:
            statement = f"UPDATE {table} SET enabled = %s WHERE {column} = %s"
            database.execute(statement.encode(), [enabled, value])
