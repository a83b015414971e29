"""While PostgreSQL answers with errors, workers and sweeper retry, and can be stopped."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import connection
from psycopg.sql import SQL, Identifier

from batches.models import BatchItem
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import deployment_environment, wait_for_end, wait_until
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Upstream

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.endurance]

# As a failover leaves it, and as a server that is being restored or is out of connections. For new sessions only: this
# test's own goes on.
STATES = {
    "it takes no writes": ("SET default_transaction_read_only = on", "RESET default_transaction_read_only"),
    "it takes no connections": ("ALLOW_CONNECTIONS false", "ALLOW_CONNECTIONS true"),
}
_CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s"


@contextlib.contextmanager
def database_that(state: str) -> Iterator[None]:
    begin, end = (SQL(clause) for clause in STATES[state])
    name = connection.settings_dict["NAME"]
    ours = connection.connection.info.backend_pid
    url = deployment_environment()["DATABASE_URL"].removesuffix(name) + "postgres"
    with psycopg.connect(url, autocommit=True) as server, contextlib.ExitStack() as closing:
        closing.callback(server.execute, _CUT, [name, ours])
        closing.callback(server.execute, SQL("ALTER DATABASE {} {}").format(Identifier(name), end))
        server.execute(SQL("ALTER DATABASE {} {}").format(Identifier(name), begin))
        server.execute(_CUT, [name, ours])
        yield


@pytest.mark.parametrize("state", STATES)
def test_nothing_is_lost_while(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, state: str
) -> None:
    upstream.handler = lambda _: answers.after(0.02)
    running = deployment.worker()
    sweeper = deployment.sweeper()
    batch = submit(catalog, *[chat_body()] * 60)
    finished = BatchItem.objects.filter(batch_id=batch.id, finished_at__isnull=False)
    wait_until(lambda: finished.count() >= 10, running.log)
    with database_that(state):
        starting = deployment.worker(ready=False)
        for process in (running, starting, sweeper):
            wait_until(lambda process=process: process.log().count("database unavailable") >= 2, process.log)  # type: ignore[misc]
    wait_for_end(batch)
    for process in (running, starting, sweeper):
        assert process.is_alive, process.log()
        assert process.stop() == 0, process.log()
    assert batch.final_counts == {"completed": 60}
    assert set(Counter(request.headers["idempotency-key"] for request in upstream.requests).values()) == {1}
    assert UsageEvent.objects.filter(late=False).count() == 60


def test_a_worker_with_an_answer_that_cannot_be_settled_ends_when_it_is_told_and_its_grace_is_over(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    """Its items are then settled as a lost worker's."""
    gate = threading.Event()
    upstream.handler = lambda _: answers.held(gate)
    worker = deployment.worker(RELAY_SHUTDOWN_GRACE_S="1")
    batch = submit(catalog, chat_body())
    upstream.wait_for(lambda up: up.in_flight == 1)
    with database_that("it takes no writes"):
        gate.set()
        wait_until(lambda: "relaybatch.db.outage" in worker.log(), worker.log)
        assert worker.stop() == 0, worker.log()
    deployment.sweeper()
    wait_for_end(batch)
    assert BatchItem.objects.get(batch_id=batch.id).error_code == "worker_lost"
