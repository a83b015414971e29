"""The overhead of a call: the gate's scripts, and the re-check of the caller."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import TYPE_CHECKING

from django.db import connection

from bench.figures import Figure, require
from bench.measurements import redis_commands
from routing.calls.call import Caller, Tokens
from routing.credentials.recheck import Allowance, clear_cache, recheck
from routing.gate.admission import Admission
from routing.gate.breaker_signals import OK
from routing.gate.redis import client
from routing.meters import METERS
from routing.resolution.gate_plan import encode_plan
from routing.resolution.host_call import HostCall
from routing.resolution.route import RouteBinding, Rule, UsableKey
from tests.support.calls.upstream_calls import caller_of
from usage.included_usage import allowance_failure
from usage.ledger import SHARDS, month_scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.deployment import BenchDeployment

CALLS = 2_000
MAX_ROUND_TRIPS = 2

_USED = Tokens(input=900, output=100)
_REQUESTS = Rule("requests", 1_000_000, 60, "sliding-window")
_CREATE_MONTH_TOTALS = f"""
INSERT INTO usage_usagetotal (scope, shard, requests, unpriced, cost_nanos, {", ".join(METERS)})
SELECT {month_scope(project="%(project)s::uuid", at="now()")}, shard, 1, 0, 1, {", ".join("1" for _ in METERS)}
FROM generate_series(0, %(shards)s - 1) AS shard ON CONFLICT DO NOTHING
"""
_CASES: tuple[tuple[str, int, tuple[Rule, ...]], ...] = (
    ("one key, no limit", 1, ()),
    ("round robin over 3 keys, no limit", 3, ()),
    ("requests in a sliding window", 1, (_REQUESTS,)),
    (
        "requests, tokens in a bucket, concurrency",
        1,
        (_REQUESTS, Rule("tokens", 10**12, 60, "token-bucket"), Rule("concurrency", 100, None, "")),
    ),
)


def figures(deployment: BenchDeployment) -> list[Figure]:
    caller = caller_of(deployment.catalog)
    ping = _microseconds(client().ping)
    return [
        *_database_figures(caller),
        *(_figure(name, keys, rules, ping=ping) for name, keys, rules in _CASES),
    ]


def _database_figures(caller: Caller) -> list[Figure]:
    with connection.cursor() as cursor:
        cursor.execute(_CREATE_MONTH_TOTALS, {"project": caller.project_id, "shards": SHARDS})
        bare = _microseconds(lambda: cursor.execute("SELECT 1"))

    def read_anew() -> None:
        clear_cache()
        recheck(caller)

    allowed = partial(allowance_failure, project_id=caller.project_id, allowance=Allowance(nanos=10**18))
    kept = _microseconds(partial(recheck, caller))
    return [
        Figure(name="re-check of the caller, kept for 0.5 s", value=kept, unit="µs"),
        *(
            Figure(
                name=name,
                value=_microseconds(do),
                unit="µs",
                reference=bare,
                note=f"1 round trip{how_often}; beside it a bare SELECT 1",
            )
            for name, do, how_often in (
                ("re-check of the caller, read anew", read_anew, ", twice a second for each caller"),
                ("allowance, where the project has one", allowed, ""),
            )
        ),
    ]


def _figure(name: str, keys: int, rules: tuple[Rule, ...], *, ping: float) -> Figure:
    choice = _choice(name, keys, rules)

    def call() -> None:
        admission = Admission(rules=rules, deadline=time.monotonic() + 60)
        admission.acquire(choice)
        admission.signal, admission.sent = OK, True
        admission.release(_USED)

    call()
    before = redis_commands(client())
    microseconds = _microseconds(call)
    trips = (redis_commands(client())["evalsha"] - before["evalsha"]) / CALLS
    require(trips <= MAX_ROUND_TRIPS, f"{name}: {trips} round trips a call")
    note = f"{trips:.0f} round trip{'s' if trips > 1 else ''}; beside it a bare PING"
    return Figure(name=f"gate: {name}", value=microseconds, unit="µs", reference=ping, note=note)


def _microseconds(do: Callable[[], object]) -> float:
    """Median time of a single call."""
    took = []
    for _ in range(CALLS):
        began = time.perf_counter()
        do()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6


def _choice(name: str, count: int, rules: tuple[Rule, ...]) -> RouteBinding:
    keys = tuple(
        UsableKey(id=f"{name} {number}", name="", secret=f"{name} {number}") for number in range(count)
    )
    plan = encode_plan(policy=name, host="bench", selection="round-robin", rules=rules, keys=keys)
    call = HostCall(url="", auth="bearer")
    return RouteBinding(
        host="bench", host_call=call, adapter="openai", upstream_name="", prices=None, keys=keys, plan=plan
    )
