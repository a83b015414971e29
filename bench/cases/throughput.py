"""Items per second by slots, `worker` lines and the upstream's delay, and what an item costs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db.models import Max, Min

from batches.models import BatchItem
from bench.bare_loop import bare_rate
from bench.figures import Figure, Goal, at_least, ratio_at_least, share_at_least, spread
from bench.item_cost import ItemCost
from bench.workload import clear_tables, require_done, submission, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Mapping

    from batches.models import Batch
    from bench.deployment import BenchDeployment
    from bench.web import Web

ROUNDS = 3
WARM_UP_ITEMS = 200
MIN_GAIN_OF_TWO = 1.7


@dataclass(frozen=True, slots=True)
class Case:
    """`slots`: of each `worker` line. `items`: so many that a round takes some seconds."""

    slots: tuple[int, ...]
    delay_ms: int
    items: int
    goals: tuple[Goal, ...] = ()

    @property
    def name(self) -> str:
        lines = "" if len(self.slots) == 1 else f" in {len(self.slots)} worker lines"
        return f"{sum(self.slots)} calls at once{lines}, upstream of {self.delay_ms} ms"

    @property
    def bare_rounds(self) -> int:
        """One where the reference mostly waits for the upstream, and hardly varies."""
        return 1 if self.delay_ms else ROUNDS

    @property
    def limit(self) -> float | None:
        return sum(self.slots) * 1000 / self.delay_ms if self.delay_ms else None


INSTANT = Case((8,), 0, 1200, (at_least(300), ratio_at_least(0.4)))
ONE_LINE = Case((8,), 50, 560, (share_at_least(0.90),))
TWO_LINES = Case((8, 8), 50, 1120)
CASES = (
    *(INSTANT, ONE_LINE, TWO_LINES),
    Case((8,), 200, 320, (share_at_least(0.97),)),
    Case((64,), 200, 1280, (share_at_least(0.75),)),
    Case((32, 32), 200, 1280, (share_at_least(0.75),)),
)
WITH_COSTS = (INSTANT, ONE_LINE)


@dataclass(frozen=True, slots=True)
class Measured:
    """Items per second, a rate a round; `costs`: of the round in the middle."""

    ours: list[float]
    bare: list[float]
    costs: list[Figure]


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    with deployment.start_web() as web, deployment.start_sweeper() as sweeper:
        pids = {
            "PostgreSQL": [deployment.servers.postgres.pid],
            "Redis": [deployment.servers.redis.pid],
            "upstream": [deployment.upstream.process.pid],
            "sweeper": [sweeper.pid],
        }
        measured = {case: _measure(deployment, web, case, pids) for case in CASES}
    clear_tables()
    found: list[Figure] = []
    for case, result in measured.items():
        found.append(_rate_figure(case, result))
        found += result.costs if case in WITH_COSTS else []
    return [*found, _gain_figure(one=measured[ONE_LINE].ours, two=measured[TWO_LINES].ours)]


def _measure(deployment: BenchDeployment, web: Web, case: Case, pids: Mapping[str, list[int]]) -> Measured:
    ours, bare, costs = [], [], []
    with deployment.start_workers(case.slots) as workers:
        _run(deployment, web, replace(case, items=WARM_UP_ITEMS, delay_ms=0))
        for number in range(ROUNDS):
            if number < case.bare_rounds:
                bare.append(_bare_rate(deployment, case))
            cost = ItemCost({"worker": [worker.pid for worker in workers], **pids})
            ours.append(_rate(_run(deployment, web, case)))
            costs.append(cost.figures(case.items))
    return Measured(ours, bare, costs[ours.index(statistics.median_low(ours))])


def _bare_rate(deployment: BenchDeployment, case: Case) -> float:
    return bare_rate(deployment.upstream, items=case.items, slots=sum(case.slots), delay_ms=case.delay_ms)


def _run(deployment: BenchDeployment, web: Web, case: Case) -> Batch:
    deployment.upstream.stats(reset=True)
    batch = wait_for_end(web.submit(submission(case.items, delay_ms=case.delay_ms)))
    require_done(batch, deployment.upstream, slots=sum(case.slots))
    return batch


def _rate(batch: Batch) -> float:
    """Items per second from the first claim to the last settlement, by the database's clock."""
    times = BatchItem.objects.filter(batch_id=batch.id).aggregate(
        first=Min("started_at"), last=Max("finished_at")
    )
    seconds: float = (times["last"] - times["first"]).total_seconds()
    return batch.total_items / seconds


def _rate_figure(case: Case, measured: Measured) -> Figure:
    return Figure(
        name=case.name,
        value=statistics.median(measured.ours),
        unit="/s",
        reference=statistics.median(measured.bare),
        limit=case.limit,
        goals=case.goals,
        note=f"{case.items:,} items, {spread(measured.ours, '/s')}; bare {spread(measured.bare, '/s')}",
    )


def _gain_figure(*, one: list[float], two: list[float]) -> Figure:
    return Figure(
        name="  two worker lines against one, 50 ms",
        value=statistics.median(two),
        unit="/s",
        reference=statistics.median(one),
        goals=(ratio_at_least(MIN_GAIN_OF_TWO),),
        note="reference: the one line above",
    )
