"""No item runs for ever: neither one of a worker that died long ago, nor one whose settling the database refuses."""

from __future__ import annotations

import contextlib
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.utils import timezone

from batches.completion.cancel import cancel_batch
from batches.completion.delete import delete_batch
from batches.execution.claim import claim_item
from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.execution.settling.settle_fallbacks import SettleRejected
from batches.execution.worker_monitor import WorkerMonitor
from batches.models import Batch, BatchItem
from batches.sweeper.cleanup import Cleanup
from batches.sweeper.sweep import reclaim_lost_items
from relaybatch.ids import uuid7
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_until
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent
from usage.reconcile import compare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

MAX_MS = 2_147_483_647


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


@contextlib.contextmanager
def refused(table: str, check: str) -> Iterator[None]:
    """No row of the table can become anything but what `check` lets through."""
    execute(f"ALTER TABLE {table} ADD CONSTRAINT refuses CHECK ({check}) NOT VALID")
    try:
        yield
    finally:
        execute(f"ALTER TABLE {table} DROP CONSTRAINT refuses")


@contextlib.contextmanager
def failing(table: str, *, code: str, when: str = "true") -> Iterator[None]:
    """Writing such a row to the table ends with an error of this code."""
    execute(
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $$"
    )
    execute(
        f"CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON {table} "
        f"FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION fails()"
    )
    try:
        yield
    finally:
        execute("DROP FUNCTION fails CASCADE")


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def item_of(batch: Batch) -> BatchItem:
    return BatchItem.objects.get(batch_id=batch.id)


def run_here(batch: Batch) -> None:
    execute_item(item_of(batch).id, in_flight=InFlightItems(uuid7(), slots=8))


def lose_to_the_sweeper(batch: Batch, *, age: timedelta = timedelta(minutes=1)) -> None:
    """A worker that has no row any more claimed the item that long ago."""
    assert claim_item(item_of(batch).id, worker_id=uuid7())
    BatchItem.objects.filter(batch_id=batch.id).update(started_at=timezone.now() - age)
    reclaim_lost_items(may_declare_lost=lambda: True)


def lose_to_the_monitor(batch: Batch) -> None:
    """The item runs by this process, says its row, and no slot knows of it."""
    monitor = WorkerMonitor(slots=1)
    assert claim_item(item_of(batch).id, worker_id=monitor.items.worker_id)
    BatchItem.objects.filter(batch_id=batch.id).update(started_at=timezone.now() - timedelta(minutes=1))
    monitor.start()
    try:
        wait_until(lambda: item_of(batch).state != "running", lambda: "it stays running", seconds=10)
    finally:
        monitor.deregister()


# The worker monitor waits for seconds before it takes an item for orphaned.
EVERYWHERE = pytest.mark.parametrize(
    "lose",
    [run_here, lose_to_the_sweeper, pytest.param(lose_to_the_monitor, marks=pytest.mark.endurance)],
)


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_an_item_of_a_worker_that_died_25_days_ago_ends_with_its_batch(
    catalog: SimpleNamespace, max_attempts: int
) -> None:
    batch = submit(catalog, max_attempts=max_attempts)
    for _ in range(max_attempts):
        lose_to_the_sweeper(batch, age=timedelta(days=25))
    item = item_of(batch)
    assert (item.state, item.error_code, item.attempt) == ("discarded", "worker_lost", max_attempts)
    events = UsageEvent.objects.order_by("attempt").values_list("attempt", "error_kind", "duration_ms")
    assert list(events) == [(n, "worker_lost", MAX_MS) for n in range(1, max_attempts + 1)]

    cancel_batch(batch)
    batch.refresh_from_db()
    assert (batch.final_counts, batch.cancel_initiated_at) == ({"discarded": 1}, None)
    delete_batch(batch)
    Cleanup().run()
    assert not Batch.objects.exists()
    assert not compare().differences


def test_a_batch_whose_worker_died_25_days_ago_can_be_cancelled_and_then_deleted(
    catalog: SimpleNamespace,
) -> None:
    batch = submit(catalog, chat_body(), chat_body(), max_attempts=3)
    first = BatchItem.objects.of(batch)[0]
    assert claim_item(first.id, worker_id=uuid7())
    BatchItem.objects.filter(id=first.id).update(started_at=timezone.now() - timedelta(days=25))
    cancel_batch(batch)
    reclaim_lost_items(may_declare_lost=lambda: True)
    batch.refresh_from_db()
    assert batch.final_counts == {"cancelled": 2}
    delete_batch(batch)
    Cleanup().run()
    assert not Batch.objects.exists()


def test_a_clock_that_was_set_back_gives_no_negative_duration(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    lose_to_the_sweeper(batch, age=timedelta(hours=-1))
    assert UsageEvent.objects.get().duration_ms == 0


def test_an_answer_whose_event_is_refused_ends_as_lost_with_one_event(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(catalog)
    with refused("usage_usageevent", "status <> 200"):
        run_here(batch)
    item = item_of(batch)
    assert (item.state, item.error_code) == ("discarded", "worker_lost")
    event = UsageEvent.objects.get()
    assert (event.error_kind, event.status, event.cost_nanos) == ("worker_lost", 0, None)
    assert event.policy == catalog.policy.name
    assert len(upstream.requests) == 1


@EVERYWHERE
def test_where_a_lost_workers_event_is_refused_as_well_the_smallest_one_is_kept(
    catalog: SimpleNamespace, lose: Callable[[Batch], None], caplog: pytest.LogCaptureFixture
) -> None:
    batch = submit(catalog, max_attempts=3)
    with refused("usage_usageevent", "policy = ''"):
        lose(batch)
    item = item_of(batch)
    assert (item.state, item.error_code, item.attempt) == ("discarded", "worker_lost", 1)
    assert item.error == "worker lost: the process that ran this item died"
    event = UsageEvent.objects.get()
    assert (event.batch_id, event.item_idx, event.attempt) == (batch.id, 0, 1)
    assert (event.owner, event.error_kind, event.cost_nanos) == (batch.owner.name, "worker_lost", None)
    assert (event.project, event.project_id, event.custom_id) == ("", None, None)
    assert logging.ERROR in [record.levelno for record in caplog.records]
    assert not compare().differences


@EVERYWHERE
def test_where_no_event_can_be_kept_the_item_ends_without_one(
    catalog: SimpleNamespace, lose: Callable[[Batch], None], caplog: pytest.LogCaptureFixture
) -> None:
    batch = submit(catalog, max_attempts=3)
    with refused("usage_usageevent", "false"):
        lose(batch)
    item = item_of(batch)
    assert (item.state, item.error_code) == ("discarded", "worker_lost")
    assert not UsageEvent.objects.exists()
    assert [record.levelno for record in caplog.records].count(logging.ERROR) >= 2
    batch.refresh_from_db()
    assert batch.final_counts == {"discarded": 1}
    delete_batch(batch)
    Cleanup().run()
    assert not Batch.objects.exists()


def test_an_error_that_the_row_refuses_ends_the_item_as_lost(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.status(400)
    batch = submit(catalog)
    with refused("batches_batchitem", "error NOT LIKE '%upstream status%'"):
        run_here(batch)
    item = item_of(batch)
    assert (item.state, item.error_code) == ("discarded", "worker_lost")
    assert UsageEvent.objects.get().error_kind == "worker_lost"


def test_an_orphaned_item_that_no_settling_can_end_does_not_keep_the_others_from_it(
    catalog: SimpleNamespace,
) -> None:
    monitor = WorkerMonitor(slots=2)
    stuck, other = (submit(catalog) for _ in range(2))
    for batch in (stuck, other):
        assert claim_item(item_of(batch).id, worker_id=monitor.items.worker_id)
    BatchItem.objects.update(started_at=timezone.now() - timedelta(minutes=1))
    with refused("batches_batchitem", f"batch_id <> '{stuck.id}' OR finished_at IS NULL"):
        monitor.start()
        try:
            wait_until(lambda: item_of(other).state == "discarded", lambda: "left running", seconds=10)
        finally:
            monitor.deregister()
    assert item_of(stuck).state == "running"


# A limit of what the database can store, and an index that is damaged: errors of the classes of an outage.
ABOUT_ROWS = pytest.mark.parametrize("code", ["54000", "XX002"])


@ABOUT_ROWS
@EVERYWHERE
def test_a_refusal_of_the_class_of_an_outage_ends_the_item_too(
    catalog: SimpleNamespace, lose: Callable[[Batch], None], code: str
) -> None:
    batch = submit(catalog, max_attempts=3)
    with failing("usage_usageevent", code=code, when="NEW.policy <> ''"):
        lose(batch)
    item = item_of(batch)
    assert (item.state, item.error_code) == ("discarded", "worker_lost")
    assert UsageEvent.objects.get().error_kind == "worker_lost"


@ABOUT_ROWS
def test_an_item_that_takes_nothing_at_all_keeps_no_other_one_from_the_sweeper(
    catalog: SimpleNamespace, code: str
) -> None:
    stuck, other = (submit(catalog) for _ in range(2))
    for batch in (stuck, other):
        assert claim_item(item_of(batch).id, worker_id=uuid7())
    with failing("batches_batchitem", code=code, when=f"NEW.batch_id = '{stuck.id}'"):
        reclaim_lost_items(may_declare_lost=lambda: True)
    assert (item_of(stuck).state, item_of(other).state) == ("running", "discarded")


@ABOUT_ROWS
def test_a_slot_does_not_wait_for_a_row_that_takes_nothing_at_all(
    catalog: SimpleNamespace, code: str
) -> None:
    batch = submit(catalog)
    with (
        failing("batches_batchitem", code=code, when="NEW.finished_at IS NOT NULL"),
        pytest.raises(SettleRejected),
    ):
        run_here(batch)
    assert item_of(batch).state == "running", "the monitor tries again"
