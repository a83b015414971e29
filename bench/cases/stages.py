"""Wall and processor time of an item by stage of a worker of eight slots. For engineers: not part of `make bench`.

The timers cost about 0.05 ms an item.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Max, Min

from batches.models import BatchItem
from bench.figures import Figure
from bench.stage_timing.stages import OF_THE_ITEM, OUTSIDE_SLOTS, STAGES, UPSTREAM_CALL
from bench.stage_timing.timers import WRITE_INTERVAL_SECONDS
from bench.workload import clear_tables, require_done, submission, wait_for_end

if TYPE_CHECKING:
    from pathlib import Path

    from bench.deployment import BenchDeployment
    from bench.web import Web

# (delay of the upstream in ms, items)
CASES = ((0, 2000), (50, 800), (200, 240))
WARM_UP_ITEMS = 300
TIMED_CELERY = (sys.executable, "-m", "bench.stage_timing.worker")


@dataclass(frozen=True, slots=True)
class Totals:
    """Of the worker so far: `{stage: (calls, wall seconds, processor seconds)}`."""

    stages: dict[str, tuple[float, float, float]]
    cpu_seconds: float
    missing: list[str]

    def since(self, earlier: Totals) -> Totals:
        stages = {
            stage: (
                values[0] - earlier.stages[stage][0],
                values[1] - earlier.stages[stage][1],
                values[2] - earlier.stages[stage][2],
            )
            for stage, values in self.stages.items()
        }
        return Totals(stages, self.cpu_seconds - earlier.cpu_seconds, self.missing)


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    path = deployment.home / "stage-totals.json"
    found: list[Figure] = []
    with (
        deployment.start_web() as web,
        deployment.start_sweeper(),
        deployment.start_worker(command=TIMED_CELERY, BENCH_STAGE_TOTALS=str(path)),
    ):
        _run(deployment, web, items=WARM_UP_ITEMS, delay_ms=0)
        for delay_ms, items in CASES:
            before = _read(path)
            seconds = _run(deployment, web, items=items, delay_ms=delay_ms)
            found += _table(_read(path).since(before), items=items, delay_ms=delay_ms, seconds=seconds)
    clear_tables()
    return found


def _read(path: Path) -> Totals:
    """The totals, once they contain what has happened until now."""
    time.sleep(WRITE_INTERVAL_SECONDS * 3)
    document: dict[str, Any] = json.loads(path.read_text())
    stages = {stage: tuple(values) for stage, values in document["stages"].items()}
    return Totals(stages, document["cpu_seconds"], document["missing"])


def _run(deployment: BenchDeployment, web: Web, *, items: int, delay_ms: int) -> float:
    """Seconds from the first claim to the last settlement."""
    deployment.upstream.stats(reset=True)
    batch = wait_for_end(web.submit(submission(items, delay_ms=delay_ms)))
    require_done(batch, deployment.upstream)
    times = BatchItem.objects.filter(batch_id=batch.id).aggregate(
        first=Min("started_at"), last=Max("finished_at")
    )
    seconds: float = (times["last"] - times["first"]).total_seconds()
    return seconds


def _table(totals: Totals, *, items: int, delay_ms: int, seconds: float) -> list[Figure]:
    slot_seconds = settings.RELAY_BATCH_CONCURRENCY * seconds
    in_slots = sum(values[1] for stage, values in totals.stages.items() if stage not in OUTSIDE_SLOTS)
    other_cpu = totals.cpu_seconds - sum(values[2] for values in totals.stages.values())
    missing = f"; not found: {', '.join(totals.missing)}" if totals.missing else ""
    return [
        Figure(
            name=f"an item's wall time in its slot, upstream of {delay_ms} ms",
            value=slot_seconds * 1000 / items,
            unit="ms",
            note=f"worker's CPU {totals.cpu_seconds * 1000 / items:.2f} ms; {items / seconds:.0f} items/s{missing}",
        ),
        *(_stage_figure(stage, totals, items=items, delay_ms=delay_ms) for stage in STAGES),
        Figure(
            name="  between items, and in other threads",
            value=(slot_seconds - in_slots) * 1000 / items,
            unit="ms",
            note=f"CPU {other_cpu * 1000 / items:.2f} ms: Celery, kombu, monitor",
        ),
    ]


def _stage_figure(stage: str, totals: Totals, *, items: int, delay_ms: int) -> Figure:
    calls, wall, cpu = totals.stages[stage]
    where = "; in a thread of its own" if stage in OUTSIDE_SLOTS else ""
    if stage == UPSTREAM_CALL:
        where = f"; {wall * 1000 / items - delay_ms:.2f} ms beyond the upstream's delay"
    name = f"  {stage}" if stage != OF_THE_ITEM else f"  {stage} (retry, log, glue)"
    note = f"CPU {cpu * 1000 / items:.2f} ms; {calls / items:.2f} calls{where}"
    return Figure(name=name, value=wall * 1000 / items, unit="ms", note=note)
