"""Both servers are down for seconds, one after the other, while a large batch runs on a deployment of its own."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from relaybatch.quickstart.shutdown import Shutdown
from tests.chaos.checks.findings import Findings
from tests.chaos.deployment.catalog import MODELS
from tests.chaos.deployment.deployment import ChaosDeployment, delete_home, start_deployment
from tests.chaos.deployment.web import WebClient
from tests.support.rows.submissions import chat_body
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS = 1000
OUTAGE_SECONDS = 20.0
PAUSE_SECONDS = 10.0
_CUT = b"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name <> 'chaos' AND backend_type = 'client backend'
"""
_FINAL = "SELECT count(*) FROM batches_batchitem WHERE finished_at IS NOT NULL"
_STATES = "SELECT concat_ws(': ', state, nullif(error_code, '')), count(*) FROM batches_batchitem GROUP BY 1"


def test_with_redis_emptied_and_killed_and_postgres_cut_off_and_killed_every_item_is_sent_once(
    tmp_path: Path,
) -> None:
    try:
        with start_deployment(tmp_path / "home", seed=1, shutdown=Shutdown()) as deployment:
            submit(deployment)
            for share, outage in (
                (0.1, redis_emptied),
                (0.2, redis_unavailable),
                (0.5, sessions_cut),
                (0.7, postgres_unavailable),
            ):
                wait_for_final_items(deployment, ITEMS * share)
                outage(deployment)
                before = final(deployment)
                wait_until(
                    lambda before=before: final(deployment) > before or final(deployment) == ITEMS,  # type: ignore[misc]
                    lambda: f"{states(deployment)}",
                    seconds=PAUSE_SECONDS,
                )
            wait_until(lambda: final(deployment) == ITEMS, lambda: f"{states(deployment)}", seconds=60)
            assert states(deployment) == {"completed": ITEMS}
            sends = Counter(served.item for served in deployment.upstream.served)
            assert len(sends) == ITEMS
            assert set(sends.values()) == {1}
    finally:
        delete_home(tmp_path / "home")


def test_with_postgres_frozen_and_thawed_no_live_worker_counts_as_lost(tmp_path: Path) -> None:
    """As in a migration of a virtual machine: no connection breaks, every response is only late."""
    try:
        with start_deployment(tmp_path / "home", seed=1, shutdown=Shutdown()) as deployment:
            submit(deployment)
            for share in (0.1, 0.4, 0.7):
                wait_for_final_items(deployment, ITEMS * share)
                interrupt(
                    partial(signal_postgres, deployment, signal.SIGSTOP),
                    partial(signal_postgres, deployment, signal.SIGCONT),
                )
            wait_until(lambda: final(deployment) == ITEMS, lambda: f"{states(deployment)}", seconds=60)
            assert states(deployment) == {"completed": ITEMS}
            assert set(Counter(served.item for served in deployment.upstream.served).values()) == {1}
    finally:
        delete_home(tmp_path / "home")


def wait_for_final_items(deployment: ChaosDeployment, count: float) -> None:
    wait_until(lambda: final(deployment) >= count, lambda: f"{states(deployment)}")


def signal_postgres(deployment: ChaosDeployment, number: signal.Signals) -> None:
    """Signal the server and its sessions; the server first, so that it starts no session in between."""
    server = deployment.servers.postgres.pid
    os.kill(server, number)
    for child in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), number)


def submit(deployment: ChaosDeployment) -> None:
    body = b'{"shape":"openai","requests":[' + b",".join([chat_body(model=MODELS["openai"])] * ITEMS) + b"]}"
    reply = WebClient(deployment, Findings()).call(
        random.Random(1), "POST", "/v1/batches", owner="ana", body=body
    )
    assert reply is not None
    assert json.loads(reply.body)["total_items"] == ITEMS


def final(deployment: ChaosDeployment) -> int:
    with deployment.database() as database:
        row = database.execute(_FINAL).fetchone()
    return int(str(row[0])) if row else 0


def states(deployment: ChaosDeployment) -> dict[str, object]:
    with deployment.database() as database:
        return {str(state): count for state, count in database.execute(_STATES).fetchall()}


def redis_emptied(deployment: ChaosDeployment) -> None:
    with redis.Redis.from_url(deployment.servers.redis_url) as client:
        client.flushall()


def redis_unavailable(deployment: ChaosDeployment) -> None:
    interrupt(deployment.servers.redis.kill, deployment.servers.redis.start)


def sessions_cut(deployment: ChaosDeployment) -> None:
    with deployment.database() as database:
        database.execute(_CUT)


def postgres_unavailable(deployment: ChaosDeployment) -> None:
    interrupt(deployment.servers.postgres.kill, deployment.servers.postgres.start)


def interrupt(kill: Callable[[], None], start: Callable[[], None]) -> None:
    kill()
    end = time.monotonic() + OUTAGE_SECONDS
    wait_until(lambda: time.monotonic() > end, lambda: "time stands still")
    start()
