"""Injects faults into a deployment at random times, in an order that the seed decides."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.chaos.deployment.upstream import HEALTHY_PROFILE
from tests.chaos.faults.payload_faults import PayloadFaults
from tests.chaos.faults.postgres_faults import PostgresFaults
from tests.chaos.faults.process_faults import ProcessFaults
from tests.chaos.faults.redis_faults import RedisFaults
from tests.chaos.faults.row_faults import RowFaults
from tests.chaos.faults.schedule import FaultSchedule
from tests.chaos.faults.upstream_faults import UpstreamFaults
from tests.chaos.faults.upstream_profiles import DEFAULT_PROFILE

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from relaybatch.quickstart.shutdown import Shutdown
    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.faults.schedule import Fault

PAUSE_SECONDS = (0.2, 2.0)
MAX_TRIES = 10


class FaultInjector:
    """Everything is done by the thread that calls `run`."""

    def __init__(
        self, deployment: ChaosDeployment, findings: Findings, *, seed: int, shutdown: Shutdown
    ) -> None:
        self._deployment = deployment
        self._shutdown = shutdown
        self._schedule = FaultSchedule(seed=seed)
        self._rows = RowFaults(deployment, self._schedule)
        self._weights: dict[Fault, int] = {
            **ProcessFaults(deployment, self._schedule).weights(),
            **RedisFaults(deployment, self._schedule).weights(),
            **PostgresFaults(deployment, self._schedule).weights(),
            **UpstreamFaults(deployment, self._schedule).weights(),
            **self._rows.weights(),
            **PayloadFaults(deployment, self._schedule, findings).weights(),
        }

    @property
    def counts(self) -> Counter[str]:
        return self._schedule.counts

    def run(self, seconds: float, *, before_fault: Callable[[], None]) -> None:
        """Inject faults for so long. In the second half, the first process of each kind is spared.

        So there are long-lived processes whose memory and threads can be checked for growth. In the middle, one relay
        key is revoked for good.
        """
        self._deployment.upstream.profile = DEFAULT_PROFILE
        began = time.monotonic()
        next_fault, is_revoked = began, False
        while (now := time.monotonic()) < began + seconds:
            self._schedule.spares_first = now > began + seconds / 2
            self._schedule.run_due(now)
            if not is_revoked and self._schedule.spares_first:
                is_revoked = self._rows.revoke_relay_key()
            if now >= next_fault:
                before_fault()
                self._inject_one()
                next_fault = now + self._schedule.rng.uniform(*PAUSE_SECONDS)
            self._shutdown.sleep(0.05)

    def recover(self) -> None:
        """Wait until every fault has ended."""
        while self._schedule.has_scheduled:
            self._schedule.run_due(time.monotonic())
            self._shutdown.sleep(0.05)
        self._deployment.upstream.profile = HEALTHY_PROFILE

    def _inject_one(self) -> None:
        """Try several faults: an active fault may exclude some of them."""
        for _ in range(MAX_TRIES):
            fault = self._schedule.rng.choices(list(self._weights), list(self._weights.values()))[0]
            if fault():
                return
