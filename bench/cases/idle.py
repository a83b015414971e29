"""What a deployment costs that has nothing to do: processor time and transactions."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from django.db import connection

from bench.figures import Figure, at_most
from bench.measurements import Statements, cpu_seconds
from bench.workload import clear_tables, submission, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.deployment import BenchDeployment

SETTLING_SECONDS, SECONDS, SERVERS_ALONE_SECONDS = 3, 20, 6
MAX_PERCENT, MAX_TRANSACTIONS = 1, 10
MAX_STATEMENTS = 8

_TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    servers = {"PostgreSQL": deployment.servers.postgres.pid, "Redis": deployment.servers.redis.pid}
    alone, _ = _measure(servers, seconds=SERVERS_ALONE_SECONDS)
    with (
        deployment.start_web(processes=None) as web,
        deployment.start_worker() as worker,
        deployment.start_sweeper() as sweeper,
    ):
        # All that is done once has been done, and connections are open.
        wait_for_end(web.submit(submission(20)))
        time.sleep(SETTLING_SECONDS)
        statements = Statements()
        statements.begin()
        pids = {"web": web.pid, "worker": worker.pid, "sweeper": sweeper.pid, **servers}
        used, transactions = _measure(pids, seconds=SECONDS)
        calls = statements.calls()
    clear_tables()
    parts = ", ".join(f"{name} {percent:.2f}" for name, percent in used.items())
    return [
        Figure(
            name="idle deployment: of one core",
            value=sum(used.values()),
            unit="%",
            reference=sum(alone.values()),
            goals=(at_most(MAX_PERCENT),),
            note=f"{parts}; over {SECONDS} s; reference: PostgreSQL and Redis alone",
        ),
        Figure(
            name="  transactions",
            value=transactions,
            unit="/s",
            goals=(at_most(MAX_TRANSACTIONS),),
            note=_statements_note(calls),
        ),
    ]


def _measure(pids: Mapping[str, int], *, seconds: float) -> tuple[dict[str, float], float]:
    """Processor time in % of one core by process, and transactions a second; both without our own."""
    transactions = _transactions()
    before, began = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
    time.sleep(seconds)
    after, took = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic() - began
    used = {name: (after[name] - before[name]) * 100 / took for name in pids}
    return used, max(0.0, _transactions() - transactions - 1) / took


def _transactions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(_TRANSACTIONS)
        return int(cursor.fetchone()[0])


def _statements_note(calls: Mapping[str, int]) -> str:
    most = sorted(calls.items(), key=lambda pair: -pair[1])[:MAX_STATEMENTS]
    return "a second: " + ", ".join(f"{count / SECONDS:.2f} {_short(text)}" for text, count in most)


def _short(statement: str) -> str:
    """The verb and the tables: `SELECT batches_worker`."""
    verb = statement.split(None, 1)[0].rstrip(";")
    tables = dict.fromkeys(re.findall(r"\b(?:batches|routing|usage)_[a-z]+", statement))
    functions = re.findall(r"\bpg_[a-z_]+", statement)
    return " ".join([verb, *list(tables)[:2]] if tables else [verb, *functions[:1]])
