"""Faults of the upstream: other response profiles, hosts that do not listen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.deployment.upstream import HOSTS
from tests.chaos.faults.upstream_profiles import DEFAULT_PROFILE, UPSTREAM_PROFILES

if TYPE_CHECKING:
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.faults.schedule import Fault, FaultSchedule

BOTH_HOSTS_PROBABILITY = 0.4


class UpstreamFaults:
    def __init__(self, deployment: ChaosDeployment, schedule: FaultSchedule) -> None:
        self._upstream = deployment.upstream
        self._schedule = schedule
        self._rng = schedule.rng

    def weights(self) -> dict[Fault, int]:
        return {self._change_profile: 10, self._stop_hosts: 4}

    def _change_profile(self) -> bool:
        name = self._rng.choice(list(UPSTREAM_PROFILES))
        if not self._schedule.start("profile", name=f"upstream {name}"):
            return False
        self._upstream.profile = UPSTREAM_PROFILES[name]
        self._schedule.after(self._rng.uniform(1, 6), self._restore_profile)
        return True

    def _restore_profile(self) -> None:
        self._upstream.profile = DEFAULT_PROFILE
        self._schedule.end("profile")

    def _stop_hosts(self) -> bool:
        hosts = HOSTS if self._rng.random() < BOTH_HOSTS_PROBABILITY else HOSTS[:1]
        if not self._schedule.start("host", name=f"upstream absent ({' and '.join(hosts)})"):
            return False
        for host in hosts:
            self._upstream.stop_host(host)
        self._schedule.after(self._rng.uniform(0.5, 4), self._start_hosts)
        return True

    def _start_hosts(self) -> None:
        for host in HOSTS:
            self._upstream.start_host(host)
        self._schedule.end("host")
