"""Run chaos: inject faults for a while, wait until every batch has ended, check the invariants."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from relaybatch.output import write_line
from relaybatch.quickstart.shutdown import Stopped
from tests.chaos.checks.batch_invariants import (
    check_batches,
    check_cleanup,
    check_logs,
    check_results_over_http,
    check_submissions,
    check_usage_totals,
)
from tests.chaos.checks.file_invariants import check_files
from tests.chaos.checks.final_state import collect_final_state
from tests.chaos.checks.findings import Findings
from tests.chaos.checks.item_invariants import check_items, check_requests, check_results
from tests.chaos.checks.live_checks import LiveChecks
from tests.chaos.checks.resource_checks import ResourceChecks
from tests.chaos.clients import Clients
from tests.chaos.deployment.deployment import delete_home, start_deployment
from tests.chaos.deployment.web import WebClient
from tests.chaos.faults.fault_injector import FaultInjector

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from relaybatch.quickstart.shutdown import Shutdown
    from tests.chaos.deployment.deployment import ChaosDeployment

_UNFINISHED = """
SELECT count(*) FROM batches_batch
WHERE ended_at IS NULL OR (input_file_id IS NOT NULL AND finalized_at IS NULL)
"""
MAX_END_SECONDS = 150.0
"""How long batches may take to end after the last fault: breakers and backoffs that still wait end within 60 s."""
MAX_QUIET_SECONDS = 45.0


@dataclass(frozen=True, slots=True)
class ChaosReport:
    """`faults`, `client_actions`: how often each was done. `home`: logs and data, None if nothing was violated."""

    seed: int
    seconds: float
    faults: Counter[str]
    client_actions: Counter[str]
    statuses: Counter[str]
    findings: Findings
    home: Path | None


def run_chaos(*, seconds: float, seed: int, shutdown: Shutdown) -> ChaosReport:
    """Run to the end and return the report.

    Raises QuickstartError if the deployment does not start, Stopped on a signal.
    """
    findings = Findings()
    home = Path(tempfile.mkdtemp(prefix="relaybatch-chaos-"))
    print_progress(f"starting a deployment (seed {seed})")
    try:
        with start_deployment(home, seed=seed, shutdown=shutdown) as deployment:
            run = _Run(deployment, findings, seed=seed, shutdown=shutdown)
            run.inject_faults(seconds)
            run.wait_for_end()
            run.check_invariants()
    except Stopped:
        delete_home(home)
        raise
    if not findings.violations:
        delete_home(home)
    return ChaosReport(
        seed=seed,
        seconds=seconds,
        faults=run.faults.counts,
        client_actions=run.clients.actions,
        statuses=run.web.statuses,
        findings=findings,
        home=home if findings.violations else None,
    )


class _Run:
    def __init__(
        self, deployment: ChaosDeployment, findings: Findings, *, seed: int, shutdown: Shutdown
    ) -> None:
        self.deployment = deployment
        self.findings = findings
        self.shutdown = shutdown
        self.web = WebClient(deployment, findings)
        self.live_checks = LiveChecks(deployment, self.web, findings, seed=seed)
        self.clients = Clients(self.web, self.live_checks, findings, seed=seed)
        self.faults = FaultInjector(deployment, findings, seed=seed, shutdown=shutdown)
        self.resources = ResourceChecks(deployment)

    def inject_faults(self, seconds: float) -> None:
        self.clients.start()
        self.live_checks.start(self.clients.submissions)
        print_progress(f"injecting faults for {seconds:g} s; dialects: {', '.join(self.clients.dialects)}")
        self.faults.run(seconds, before_fault=self.resources.sample)
        self.faults.recover()

    def wait_for_end(self) -> None:
        """Stop the clients and wait until every batch has ended. Redis is emptied, which closes open breakers."""
        self.clients.stop()
        with redis.Redis.from_url(self.deployment.servers.redis_url) as client:
            client.flushall()
        print_progress("no more faults: waiting until every batch has ended")
        began = time.monotonic()
        self.clients.repeat_unanswered_creates(self.shutdown.sleep)
        ended = self._wait(self._all_ended, seconds=MAX_END_SECONDS)
        self.findings.notes["until every batch had ended"] = f"{time.monotonic() - began:.0f} s"
        self.findings.record(
            "every batch ends", *([] if ended else [f"not within {MAX_END_SECONDS:g} s"]), times=0
        )
        self.resources.sample()
        self.live_checks.stop()

    def check_invariants(self) -> None:
        print_progress("checking the invariants")
        with self.deployment.database() as database:
            state = collect_final_state(
                self.deployment,
                database,
                finals=self.live_checks.finals,
                submissions=self.clients.submissions,
            )
            rows = {batch.id: batch.max_attempts for batch in state.batches.values()}
            check_batches(state, self.findings, payloads=self.deployment.payloads)
            check_submissions(state, self.findings, retried=self.clients.retried)
            check_items(state, self.findings, max_attempts=self.live_checks.max_attempts | rows)
            check_requests(state, self.findings)
            check_results(state, self.findings, payloads=self.deployment.payloads)
            check_results_over_http(state, self.findings, self.web)
            check_files(state, self.findings, self.web)
            check_usage_totals(self.deployment, self.findings, shutdown=self.shutdown)
            check_cleanup(
                self.deployment,
                database,
                self.findings,
                final_state=state,
                wait=lambda condition: self._wait(condition, seconds=MAX_QUIET_SECONDS),
            )
        self.resources.check(self.findings, max_sessions=self.live_checks.max_sessions)
        check_logs(self.deployment, self.findings)
        self.findings.notes["batches"] = str(len(state.batches))
        self.findings.notes["items"] = str(len(state.items))
        self.findings.notes["requests to the upstream"] = str(len(state.answers))
        self.findings.notes["excused attempts"] = str(sum(item.excused for item in state.items))
        late = sum(event.late for events in state.events.values() for event in events)
        self.findings.notes["late usage events"] = str(late)

    def _all_ended(self) -> bool:
        with self.deployment.database() as database:
            row = database.execute(_UNFINISHED).fetchone()
        return row == (0,)

    def _wait(self, condition: Callable[[], bool], *, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.shutdown.sleep(0.2)
        return True


def print_progress(text: str) -> None:
    write_line(sys.stderr, f"chaos: {text}")
