"""Wall and processor time of an item by stage of a worker. For engineers: not part of `make bench`.

The timers cost about 0.1 ms an item.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Max, Min

from batches.execution.call_slots import threads_for
from batches.models import BatchItem
from bench.figures import Figure
from bench.stage_timing.stages import NOTES, PUBLISHER_STAGES, STAGES, UPSTREAM_CALL
from bench.stage_timing.thread_times import CELERY, ITEMS, OTHERS, PUBLISHER
from bench.stage_timing.timers import WRITE_INTERVAL_SECONDS
from bench.workload import clear_tables, require_done, submission, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.deployment import BenchDeployment
    from bench.web import Web

# (delay of the upstream in ms, items)
CASES = ((0, 2000), (50, 800), (200, 240))
WARM_UP_ITEMS = 300
WALL, CPU = 1, 2
TIMED_CELERY = (sys.executable, "-m", "bench.stage_timing.worker")


@dataclass(frozen=True, slots=True)
class Totals:
    """Of the worker so far.

    `stages`: `{stage: (calls, wall seconds, processor seconds)}`. `threads`: `{kind: processor seconds}`.
    """

    stages: dict[str, tuple[float, float, float]]
    threads: dict[str, float]
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
        threads = {kind: seconds - earlier.threads[kind] for kind, seconds in self.threads.items()}
        return Totals(stages, threads, self.missing)

    def of_items(self, column: int) -> float:
        """The sum of a column over the stages of the items' threads."""
        return sum(values[column] for stage, values in self.stages.items() if stage not in PUBLISHER_STAGES)

    def of_publisher(self, column: int) -> float:
        return sum(self.stages[stage][column] for stage in PUBLISHER_STAGES)


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
    return Totals(stages, document["threads"], document["missing"])


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
    slots = settings.RELAY_BATCH_CONCURRENCY
    threads = threads_for(slots)
    cpu = sum(totals.threads.values())
    missing = f"; not found: {', '.join(totals.missing)}" if totals.missing else ""
    return [
        Figure(
            name=f"an item's wall time in its thread, upstream of {delay_ms} ms",
            value=threads * seconds * 1000 / items,
            unit="ms",
            note=f"{threads} threads; worker's CPU {cpu * 1000 / items:.2f} ms; {items / seconds:.0f} items/s{missing}",
        ),
        Figure(
            name="  calls at once, mean",
            value=totals.stages[UPSTREAM_CALL][1] / seconds,
            unit="",
            limit=slots,
        ),
        *(_stage_figure(stage, totals, items=items, delay_ms=delay_ms) for stage in STAGES),
        Figure(
            name="  between items, in their threads",
            value=(threads * seconds - totals.of_items(WALL)) * 1000 / items,
            unit="ms",
            note=f"{_cpu_text(totals.threads[ITEMS] - totals.of_items(CPU), items)}: Celery, and no message",
        ),
        *_thread_figures(totals, items=items),
    ]


def _stage_figure(stage: str, totals: Totals, *, items: int, delay_ms: int) -> Figure:
    calls, wall, cpu = totals.stages[stage]
    notes = [_cpu_text(cpu, items), f"{calls / items:.2f} calls", NOTES.get(stage, "")]
    if stage in PUBLISHER_STAGES:
        notes.append("in a thread of its own")
    if stage == UPSTREAM_CALL:
        notes.append(f"{wall * 1000 / items - delay_ms:.2f} ms beyond the upstream's delay")
    note = "; ".join(note for note in notes if note)
    return Figure(name=f"  {stage}", value=wall * 1000 / items, unit="ms", note=note)


def _thread_figures(totals: Totals, *, items: int) -> Iterator[Figure]:
    """Processor time alone: no item waits in these threads."""
    for name, seconds in (
        ("Celery's thread", totals.threads[CELERY]),
        ("publisher thread, beside mark and send", totals.threads[PUBLISHER] - totals.of_publisher(CPU)),
        ("other threads", totals.threads[OTHERS]),
    ):
        yield Figure(name=f"  {name}", value=None, unit="ms", note=_cpu_text(seconds, items))


def _cpu_text(seconds: float, items: int) -> str:
    return f"CPU {seconds * 1000 / items:.2f} ms"
