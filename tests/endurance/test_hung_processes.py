"""Processes that hang, being stopped or on an unreachable machine, delay nobody for long."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from batches.execution.claim import claim_item
from batches.models import BatchItem
from relaybatch.ids import uuid7
from relaybatch.quickstart.servers.private_servers import PrivateRedis
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_for_end, wait_until
from usage.models import UsageEvent

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_sweeper_that_hangs_loses_its_lock_to_the_next_one(
    deployment: Deployment, catalog: SimpleNamespace
) -> None:
    first = deployment.sweeper()
    early = submit(catalog, chat_body(), lifetime_seconds=1)
    wait_for_end(early)
    first.signal(signal.SIGSTOP)
    deployment.sweeper()
    late = submit(catalog, chat_body(), lifetime_seconds=1)
    wait_for_end(late)
    first.signal(signal.SIGCONT)
    wait_until(lambda: "database unavailable" in first.log(), first.log)
    assert first.is_alive, "it finds out, and waits for the lock"


def test_a_redis_that_hangs_stops_neither_expiry_nor_the_care_for_dead_workers(
    deployment: Deployment, catalog: SimpleNamespace, tmp_path: Path
) -> None:
    """Redis accepts connections and does not answer."""
    broker = PrivateRedis(tmp_path)
    broker.start()
    try:
        os.kill(broker.pid, signal.SIGSTOP)
        sweeper = deployment.sweeper(REDIS_URL=broker.url)
        lost = submit(catalog, chat_body())
        wait_until(lambda: "broker unavailable" in sweeper.log(), sweeper.log)
        early = submit(catalog, chat_body(), lifetime_seconds=1)
        assert claim_item(BatchItem.objects.get(batch_id=lost.id).id, worker_id=uuid7())
        wait_for_end(early, lost)
        assert (early.final_counts, lost.final_counts) == ({"expired": 1}, {"discarded": 1})
        waiting = submit(catalog, chat_body())
        os.kill(broker.pid, signal.SIGCONT)
        deployment.worker(REDIS_URL=broker.url)
        wait_for_end(waiting)
        assert waiting.final_counts == {"completed": 1}
    finally:
        os.kill(broker.pid, signal.SIGCONT)
        broker.stop()


def test_a_worker_that_hangs_while_it_settles_holds_up_nobody_and_its_usage_is_kept(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    """It holds the batch's lock and the item's row; the server ends its transaction, the sweeper reclaims the item."""
    sleeper = deployment.worker(RELAY_FAULT="while_settling:stop@1")
    deployment.sweeper()
    batch = submit(catalog, chat_body())
    wait_for_end(batch)
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.error_code) == ("discarded", "worker_lost")
    sleeper.signal(signal.SIGCONT)
    late = UsageEvent.objects.filter(batch_id=batch.id, late=True)
    wait_until(late.exists, sleeper.log)
    assert late.get().cost_nanos
    after = submit(catalog, chat_body())
    wait_for_end(after)
    assert after.final_counts == {"completed": 1}, "the worker goes on"
    assert len(upstream.requests) == 2
