"""Both servers away for seconds, one after the other, while a large batch runs on a deployment of its own."""

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
        with start_deployment(tmp_path / "home", seed=1, shutdown=Shutdown()) as place:
            submit(place)
            for share, outage in (
                (0.1, redis_emptied),
                (0.2, redis_unavailable),
                (0.5, sessions_cut),
                (0.7, postgres_unavailable),
            ):
                wait_until(lambda share=share: final(place) >= ITEMS * share, lambda: f"{states(place)}")  # type: ignore[misc]
                outage(place)
                before = final(place)
                wait_until(
                    lambda before=before: final(place) > before or final(place) == ITEMS,  # type: ignore[misc]
                    lambda: f"{states(place)}",
                    seconds=PAUSE_SECONDS,
                )
            wait_until(lambda: final(place) == ITEMS, lambda: f"{states(place)}", seconds=60)
            assert states(place) == {"completed": ITEMS}
            sends = Counter(served.item for served in place.upstream.served)
            assert len(sends) == ITEMS
            assert set(sends.values()) == {1}
    finally:
        delete_home(tmp_path / "home")


def test_with_postgres_frozen_and_thawed_no_live_worker_counts_as_dead(tmp_path: Path) -> None:
    """As a virtual machine that is moved: no connection breaks, every answer is only late."""
    try:
        with start_deployment(tmp_path / "home", seed=1, shutdown=Shutdown()) as place:
            submit(place)
            for share in (0.1, 0.4, 0.7):
                wait_until(lambda share=share: final(place) >= ITEMS * share, lambda: f"{states(place)}")  # type: ignore[misc]
                interrupt(
                    partial(signal_postgres, place, signal.SIGSTOP),
                    partial(signal_postgres, place, signal.SIGCONT),
                )
            wait_until(lambda: final(place) == ITEMS, lambda: f"{states(place)}", seconds=60)
            assert states(place) == {"completed": ITEMS}
            assert set(Counter(served.item for served in place.upstream.served).values()) == {1}
    finally:
        delete_home(tmp_path / "home")


def signal_postgres(place: ChaosDeployment, number: signal.Signals) -> None:
    """The server and its sessions; the first one first, so that none is begun meanwhile."""
    server = place.servers.postgres.pid
    os.kill(server, number)
    for child in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), number)


def submit(place: ChaosDeployment) -> None:
    body = b'{"shape":"openai","requests":[' + b",".join([chat_body(model=MODELS["openai"])] * ITEMS) + b"]}"
    reply = WebClient(place, Findings()).call(random.Random(1), "POST", "/v1/batches", owner="ana", body=body)
    assert reply is not None
    assert json.loads(reply.body)["total_items"] == ITEMS


def final(place: ChaosDeployment) -> int:
    with place.database() as database:
        row = database.execute(_FINAL).fetchone()
    return int(str(row[0])) if row else 0


def states(place: ChaosDeployment) -> dict[str, object]:
    with place.database() as database:
        return {str(state): count for state, count in database.execute(_STATES).fetchall()}


def redis_emptied(place: ChaosDeployment) -> None:
    with redis.Redis.from_url(place.servers.redis_url) as client:
        client.flushall()


def redis_unavailable(place: ChaosDeployment) -> None:
    interrupt(place.servers.redis.kill, place.servers.redis.start)


def sessions_cut(place: ChaosDeployment) -> None:
    with place.database() as database:
        database.execute(_CUT)


def postgres_unavailable(place: ChaosDeployment) -> None:
    interrupt(place.servers.postgres.kill, place.servers.postgres.start)


def interrupt(kill: Callable[[], None], start: Callable[[], None]) -> None:
    kill()
    end = time.monotonic() + OUTAGE_SECONDS
    wait_until(lambda: time.monotonic() > end, lambda: "time stands still")
    start()
