"""Submissions of one item, one after another and by many callers at once, beside a worker that runs them."""

from __future__ import annotations

import statistics
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from batches.models import Batch
from bench.figures import Figure, at_least, at_most, percentile, require, spread
from bench.workload import clear_tables, require_sent_once, submission, wait_until_all_ended

if TYPE_CHECKING:
    from bench.deployment import BenchDeployment
    from bench.web import KeepAlive, Web

ROUNDS = 3
ALONE, TOGETHER = 100, 400
CALLERS = 16
MAX_ALONE_MS, MIN_TOGETHER = 12, 150


@dataclass(slots=True)
class Calls:
    """Milliseconds of each call, and calls per second."""

    milliseconds: list[float] = field(default_factory=list)
    rate: float = 0.0


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    with deployment.start_web(processes=None) as web, deployment.start_worker(), deployment.start_sweeper():
        _submit_round(deployment, web, callers=CALLERS, calls=CALLERS * 4)
        alone, together, alone_bare, together_bare = [], [], [], []
        for _ in range(ROUNDS):
            alone.append(_submit_round(deployment, web, callers=1, calls=ALONE))
            alone_bare.append(_round(web, callers=1, calls=ALONE, bare=True))
            together.append(_submit_round(deployment, web, callers=CALLERS, calls=TOGETHER))
            together_bare.append(_round(web, callers=CALLERS, calls=TOGETHER, bare=True))
    clear_tables()
    return [
        *_alone_figures(alone, alone_bare),
        _together_figure(together, together_bare),
    ]


def _alone_figures(ours: list[Calls], bare: list[Calls]) -> list[Figure]:
    middles = [percentile(calls.milliseconds, 50) for calls in ours]
    everything = [milliseconds for calls in ours for milliseconds in calls.milliseconds]
    bare_everything = [milliseconds for calls in bare for milliseconds in calls.milliseconds]
    return [
        Figure(
            name="submission of one item, 1 caller: p50",
            value=statistics.median(middles),
            unit="ms",
            reference=percentile(bare_everything, 50),
            goals=(at_most(MAX_ALONE_MS),),
            note=f"{spread(middles, 'ms')}; {ALONE} calls each, a worker runs them; reference: GET /healthz",
        ),
        Figure(
            name="  p95",
            value=percentile(everything, 95),
            unit="ms",
            reference=percentile(bare_everything, 95),
        ),
    ]


def _together_figure(ours: list[Calls], bare: list[Calls]) -> Figure:
    rates = [calls.rate for calls in ours]
    middle = percentile([milliseconds for calls in ours for milliseconds in calls.milliseconds], 50)
    return Figure(
        name=f"submissions of one item, {CALLERS} callers",
        value=statistics.median(rates),
        unit="/s",
        reference=statistics.median(calls.rate for calls in bare),
        goals=(at_least(MIN_TOGETHER),),
        note=f"{spread(rates, '/s')}; p50 {middle:.1f} ms; web as the Procfile starts it",
    )


def _submit_round(deployment: BenchDeployment, web: Web, *, callers: int, calls: int) -> Calls:
    """Submit; then wait until all of them ended, so that the next round begins as this one did."""
    before = Batch.objects.count()
    deployment.upstream.stats(reset=True)
    result = _round(web, callers=callers, calls=calls)
    wait_until_all_ended()
    require(Batch.objects.count() == before + calls, "a submission was lost")
    require(require_sent_once(deployment.upstream) == calls, "an item was not sent")
    return result


def _round(web: Web, *, callers: int, calls: int, bare: bool = False) -> Calls:
    result = Calls()
    failures: list[Exception] = []
    threads = [
        threading.Thread(target=_call_all, args=(web, calls // callers, bare, result, failures))
        for _ in range(callers)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result.rate = calls / (time.perf_counter() - began)
    require(not failures, f"a call failed: {failures[:1]}")
    return result


def _call_all(web: Web, calls: int, bare: bool, result: Calls, failures: list[Exception]) -> None:
    try:
        body = submission(1)
        with web.connect() as caller:
            for _ in range(calls):
                began = time.perf_counter()
                _ask_health(caller) if bare else caller.submit(body)
                result.milliseconds.append((time.perf_counter() - began) * 1000)
    except Exception as error:  # noqa: BLE001 -- a thread's end: reported by the round
        failures.append(error)


def _ask_health(caller: KeepAlive) -> None:
    status, _ = caller.call("GET", "/healthz")
    require(status == 200, f"healthz was answered with {status}")
