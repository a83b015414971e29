"""The whole of it: harm for a while, calm until all has ended, and then the questions."""

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
    check_logs,
    check_shown,
    check_submissions,
    check_surroundings,
    check_totals,
)
from tests.chaos.checks.final_state import gather
from tests.chaos.checks.findings import Findings
from tests.chaos.checks.item_invariants import check_items, check_requests, check_results
from tests.chaos.checks.live_checks import Watching
from tests.chaos.checks.resource_checks import Sizes
from tests.chaos.clients import Callers
from tests.chaos.deployment.deployment import forget, open_place
from tests.chaos.deployment.web import Web
from tests.chaos.fault_injector import Harm

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from relaybatch.quickstart.shutdown import Interruption
    from tests.chaos.deployment.deployment import Place

END_SECONDS = 150.0
"""The longest that a batch may need once nothing disturbs it: pauses that are still open end within 60 s."""
QUIET_SECONDS = 45.0


@dataclass(frozen=True, slots=True)
class Told:
    """`home` is None when everything held: then it is removed."""

    seed: int
    seconds: float
    done: Counter[str]
    callers: Counter[str]
    statuses: Counter[str]
    findings: Findings
    home: Path | None


def run_chaos(*, seconds: float, seed: int, interruption: Interruption) -> Told:
    """Ends by itself. Raises `QuickstartError` when the deployment does not even start, `Stopped` on a signal."""
    findings = Findings()
    home = Path(tempfile.mkdtemp(prefix="relaybatch-chaos-"))
    say(f"starting a deployment (seed {seed})")
    try:
        with open_place(home, seed=seed, interruption=interruption) as place:
            run = _Run(place, findings, seed=seed, interruption=interruption)
            run.disturb(seconds)
            run.calm_down()
            run.ask()
    except Stopped:
        forget(home)
        raise
    if not findings.violations:
        forget(home)
    return Told(
        seed=seed,
        seconds=seconds,
        done=run.harm.done,
        callers=run.callers.done,
        statuses=run.web.statuses,
        findings=findings,
        home=home if findings.violations else None,
    )


class _Run:
    def __init__(self, place: Place, findings: Findings, *, seed: int, interruption: Interruption) -> None:
        self.place = place
        self.findings = findings
        self.interruption = interruption
        self.web = Web(place, findings)
        self.watching = Watching(place, self.web, findings, seed=seed)
        self.callers = Callers(self.web, self.watching, seed=seed)
        self.harm = Harm(place, findings, seed=seed, interruption=interruption)
        self.sizes = Sizes(place)

    def disturb(self, seconds: float) -> None:
        self.callers.start()
        self.watching.start(self.callers.orders)
        say(f"disturbing it for {seconds:g} s; served: {', '.join(self.callers.dialects)}")
        self.harm.run(seconds, look=self.sizes.note)
        self.harm.end()

    def calm_down(self) -> None:
        """An emptied Redis forgets open breakers, so that the end does not wait for them."""
        self.callers.stop()
        with redis.Redis.from_url(self.place.servers.redis_url) as client:
            client.flushall()
        say("undisturbed: waiting until every batch has ended")
        began = time.monotonic()
        self.callers.settle_doubts(self.interruption.pause)
        ended = self._wait(self._all_ended, seconds=END_SECONDS)
        self.findings.notes["until every batch had ended"] = f"{time.monotonic() - began:.0f} s"
        self.findings.look("every batch ends", *([] if ended else [f"not within {END_SECONDS:g} s"]), times=0)
        self.sizes.note()
        self.watching.stop()

    def ask(self) -> None:
        say("asking what happened")
        with self.place.database() as database:
            evidence = gather(self.place, database, finals=self.watching.finals, orders=self.callers.orders)
            rows = {batch.id: batch.max_attempts for batch in evidence.batches.values()}
            check_batches(evidence, self.findings, payloads=self.place.payloads)
            check_submissions(evidence, self.findings, retried=self.callers.retried)
            check_items(evidence, self.findings, most_attempts=self.watching.most_attempts | rows)
            check_requests(evidence, self.findings)
            check_results(evidence, self.findings, payloads=self.place.payloads)
            check_shown(evidence, self.findings, self.web)
            check_totals(self.place, self.findings, interruption=self.interruption)
            check_surroundings(
                self.place,
                database,
                self.findings,
                evidence=evidence,
                wait=lambda condition: self._wait(condition, seconds=QUIET_SECONDS),
            )
        self.sizes.check(self.findings, most_sessions=self.watching.most_sessions)
        check_logs(self.place, self.findings)
        self.findings.notes["batches"] = str(len(evidence.batches))
        self.findings.notes["items"] = str(len(evidence.items))
        self.findings.notes["requests to the upstream"] = str(len(evidence.answers))
        self.findings.notes["excused attempts"] = str(sum(item.excused for item in evidence.items))
        late = sum(event.late for events in evidence.events.values() for event in events)
        self.findings.notes["late usage events"] = str(late)

    def _all_ended(self) -> bool:
        with self.place.database() as database:
            row = database.execute("SELECT count(*) FROM batches_batch WHERE ended_at IS NULL").fetchone()
        return row == (0,)

    def _wait(self, condition: Callable[[], bool], *, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.interruption.pause(0.2)
        return True


def say(text: str) -> None:
    write_line(sys.stderr, f"chaos: {text}")
