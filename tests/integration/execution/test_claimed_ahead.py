"""What is claimed ahead of its slot: nothing is sent without one, and nothing stands still for long."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.utils import timezone

from batches.completion.cancel import cancel_batch
from batches.execution import abort_cancelled, call_slots, execute
from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem
from relaybatch.ids import uuid7
from routing.credentials import recheck
from routing.credentials.relay_keys import revoke_key
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_until
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from types import SimpleNamespace

    from batches.models import Batch
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

LONG_SECONDS = 20.0


class OneSlot:
    """A worker with one slot, which a call holds until `end`, and a thread whose item is claimed ahead."""

    def __init__(self, upstream: Upstream, catalog: SimpleNamespace, threads: ThreadPoolExecutor) -> None:
        self.items = InFlightItems(uuid7(), slots=1)
        self._upstream = upstream
        self._threads = threads
        self._may_end = threading.Event()
        # After a first call, this process knows how long one takes.
        self._run(submit(catalog)).result(LONG_SECONDS)
        upstream.script(answers.held(self._may_end))
        self.running = self._run(submit(catalog))
        upstream.wait_for(lambda up: up.in_flight == 1)

    def claim_ahead(self, batch: Batch) -> Future[None]:
        future = self._run(batch)
        wait_until(lambda: bool(self.items.call_slots._waiters), lambda: "no thread waits for a slot")
        return future

    def end(self) -> None:
        self._may_end.set()
        self.running.result(LONG_SECONDS)

    def _run(self, batch: Batch) -> Future[None]:
        return self._threads.submit(self._execute, BatchItem.objects.get(batch_id=batch.id))

    def _execute(self, item: BatchItem) -> None:
        try:
            execute_item(item.id, in_flight=self.items)
        finally:
            connection.close()


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


@pytest.fixture
def one_slot(
    upstream: Upstream, catalog: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OneSlot]:
    """Its slot is expected to come free at any moment, and is waited for as long as a test needs."""
    monkeypatch.setattr(call_slots, "CLAIM_AHEAD_SECONDS", 3600.0)
    monkeypatch.setattr(call_slots, "MAX_WAIT_SECONDS", LONG_SECONDS)
    monkeypatch.setattr(execute, "MAX_CLAIM_AGE_SECONDS", 0.0)
    with ThreadPoolExecutor(4) as threads:
        one_slot = OneSlot(upstream, catalog, threads)
        with contextlib.ExitStack() as stack:
            stack.callback(one_slot.end)
            yield one_slot


def row(batch: Batch) -> tuple[str, int, str]:
    item = BatchItem.objects.get(batch_id=batch.id)
    return item.state, item.attempt, item.waiting_reason


def test_an_item_without_a_slot_is_given_back_and_costs_no_attempt(
    one_slot: OneSlot, catalog: SimpleNamespace, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_slots, "MAX_WAIT_SECONDS", 0.05)
    batch = submit(catalog)
    one_slot._run(batch).result(LONG_SECONDS)
    assert row(batch) == ("available", 0, "")
    assert not UsageEvent.objects.filter(batch_id=batch.id).exists()
    assert len(upstream.requests) == 2
    one_slot.end()
    one_slot._run(batch).result(LONG_SECONDS)
    assert row(batch) == ("completed", 1, "")


def test_an_item_that_waits_for_its_slot_is_running_and_sent_when_it_has_one(
    one_slot: OneSlot, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(catalog)
    waiting = one_slot.claim_ahead(batch)
    assert row(batch) == ("running", 1, "")
    one_slot.end()
    waiting.result(LONG_SECONDS)
    assert row(batch) == ("completed", 1, "")
    assert upstream.max_in_flight == 1


def test_an_item_whose_batch_is_cancelled_while_it_waits_is_not_sent(
    one_slot: OneSlot, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    abort_cancelled._over.clear()
    batch = submit(catalog)
    waiting = one_slot.claim_ahead(batch)
    cancel_batch(batch)
    assert row(batch) == ("running", 1, "")
    one_slot.end()
    waiting.result(LONG_SECONDS)
    assert row(batch) == ("cancelled", 0, "")
    assert len(upstream.requests) == 2
    batch.refresh_from_db()
    assert batch.final_counts == {"cancelled": 1}


def test_an_item_whose_batch_expires_while_it_waits_is_not_sent(
    one_slot: OneSlot, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(catalog, lifetime_seconds=60)
    waiting = one_slot.claim_ahead(batch)
    type(batch).objects.filter(id=batch.id).update(expires_at=timezone.now())
    one_slot.end()
    waiting.result(LONG_SECONDS)
    assert row(batch) == ("expired", 0, "")
    assert len(upstream.requests) == 2


def test_an_item_whose_credential_is_revoked_while_it_waits_is_not_sent(
    one_slot: OneSlot, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    caller = make_caller(catalog)
    batch = submit(caller, chat_body())
    waiting = one_slot.claim_ahead(batch)
    revoke_key(key_id=caller.relay_key.id, now=timezone.now())
    recheck.clear_cache()
    one_slot.end()
    waiting.result(LONG_SECONDS)
    assert BatchItem.objects.get(batch_id=batch.id).error_code == "credential_revoked"
    assert len(upstream.requests) == 2


def test_an_item_that_waits_when_its_worker_stops_is_given_back(
    one_slot: OneSlot, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(catalog)
    waiting = one_slot.claim_ahead(batch)
    one_slot.items.stop()
    waiting.result(LONG_SECONDS)
    assert row(batch) == ("available", 0, "worker_stopped")
    assert not UsageEvent.objects.filter(batch_id=batch.id).exists()
    assert len(upstream.requests) == 2
