"""The worker monitor goes on with each of its steps, whatever another one meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batches.execution.worker_monitor import WorkerMonitor
from batches.models import Worker
from routing.gate import redis as gate_redis
from routing.gate.liveness import liveness
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heartbeat_that_fails(settings: Settings) -> Iterator[None]:
    """At every poll: with an address that the client rejects, which is not a Redis that is unavailable."""
    settings.REDIS_URL = "nonsense"
    settings.RELAY_WORKER_LOST_S = 1
    gate_redis.client.cache_clear()
    liveness._reset()
    yield
    gate_redis.client.cache_clear()
    liveness._reset()


def test_the_worker_row_is_renewed_while_the_heartbeat_to_redis_fails(heartbeat_that_fails: None) -> None:
    monitor = WorkerMonitor(slots=1)
    monitor.start()
    rows = Worker.objects.filter(id=monitor.items.worker_id)
    started = rows.get().seen_at
    try:
        wait_until(lambda: rows.get().seen_at > started, lambda: "the row is never renewed", seconds=10)
    finally:
        monitor.deregister()
