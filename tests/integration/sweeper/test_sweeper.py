"""The sweeper's steps: each runs whatever is wrong with another, and no live worker is declared lost."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import connection

from batches.completion.cancel import cancel_batch
from batches.completion.delete import delete_batch
from batches.execution.claim import claim_item
from batches.models import Batch, BatchItem
from batches.publishing.publish import drain_publisher, publish_all_due, publish_due
from batches.sweeper import sweep
from batches.sweeper.database_uptime import DatabaseUptime
from batches.sweeper.loop import Sweeper
from batches.sweeper.sweep import reclaim_lost_items
from relaybatch.ids import uuid7
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.submissions import submit
from tests.support.servers.deployment import deployment_environment, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def catalog() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


@pytest.fixture
def sweeping(settings: Settings) -> Iterator[None]:
    settings.RELAY_WORKER_LOST_S = 3
    sweeper = Sweeper()
    thread = threading.Thread(target=sweeper.run)
    thread.start()
    yield
    sweeper.stop()
    thread.join()


def claimed(batch: Batch) -> BatchItem:
    item = BatchItem.objects.get(batch_id=batch.id)
    assert claim_item(item.id, worker_id=uuid7())
    return item


def state(item: BatchItem) -> str:
    return BatchItem.objects.get(id=item.id).state


def wait_for(item: BatchItem, expected: str) -> None:
    wait_until(lambda: state(item) == expected, lambda: state(item))


def test_a_claim_that_cannot_be_settled_does_not_keep_the_ones_behind_it(
    catalog: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "MAX_ROWS_PER_STEP", 1)
    first, second = claimed(submit(catalog)), claimed(submit(catalog))
    with a_check_that_refuses(first):
        reclaim_lost_items(may_declare_lost=lambda: True)
    assert (state(first), state(second)) == ("running", "discarded")


def test_one_failing_step_stops_neither_reclaiming_nor_publishing(
    catalog: SimpleNamespace, sweeping: None
) -> None:
    """Expiry fails at each sweep."""
    overdue, lost, due = (submit(catalog, lifetime_seconds=1), claimed(submit(catalog)), submit(catalog))
    drain_publisher()
    with a_check_that_refuses(BatchItem.objects.get(batch_id=overdue.id)):
        BatchItem.objects.filter(batch_id=due.id).update(published_at=None)
        wait_for(lost, "discarded")
        published = BatchItem.objects.filter(batch_id=due.id, published_at__isnull=False)
        wait_until(published.exists, lambda: "not published")
        assert Batch.objects.get(id=overdue.id).ended_at is None


def test_one_owner_whose_items_cannot_be_published_keeps_nobody_waiting(catalog: SimpleNamespace) -> None:
    batches = [submit(make_caller(catalog)) for _ in range(3)]
    drain_publisher()
    BatchItem.objects.update(published_at=None)
    for batch in batches:
        refused = BatchItem.objects.get(batch_id=batch.id)
        execute(
            f"ALTER TABLE batches_batchitem ADD CONSTRAINT stuck CHECK (id <> '{refused.id}' OR published_at IS NULL)"
        )
        assert not publish_all_due()
        execute("ALTER TABLE batches_batchitem DROP CONSTRAINT stuck")
        published = BatchItem.objects.filter(published_at__isnull=False)
        assert published.count() == 2
        published.update(published_at=None)
    assert publish_all_due()


def test_statements_beside_the_orm_are_heard_as_well(catalog: SimpleNamespace) -> None:
    """Long publishing would else look like a suspended database."""
    batch = submit(catalog)
    drain_publisher()
    statements: list[str] = []

    def hear(execute: Callable[..., object], statement: str, *rest: object) -> object:
        statements.append(statement)
        return execute(statement, *rest)

    with connection.execute_wrapper(hear):
        publish_due(batch.owner_id)
    assert len(statements) == 1


@contextlib.contextmanager
def a_check_that_refuses(item: BatchItem) -> Iterator[None]:
    """No transaction can make this item final, as with a row that is damaged."""
    check = f"CHECK (id <> '{item.id}' OR finished_at IS NULL)"
    execute(f"ALTER TABLE batches_batchitem ADD CONSTRAINT stuck {check}")
    yield
    execute("ALTER TABLE batches_batchitem DROP CONSTRAINT stuck")


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_what_is_due_does_not_wait_for_a_removal(catalog: SimpleNamespace, settings: Settings) -> None:
    """The removal of a deleted batch waits for a lock, as it may for a slow volume."""
    deleted, waiting = submit(catalog), submit(catalog)
    drain_publisher()
    cancel_batch(deleted)
    delete_batch(deleted)
    settings.RELAY_WORKER_LOST_S = 30
    sweeper = Sweeper()
    thread = threading.Thread(target=sweeper.run)
    with psycopg.connect(deployment_environment()["DATABASE_URL"]) as holder:
        holder.execute("SELECT id FROM batches_batch WHERE id = %s FOR UPDATE", [deleted.id])
        thread.start()
        wait_until(lambda: holder_is_waited_for(holder), lambda: "no removal")
        BatchItem.objects.filter(batch_id=waiting.id).update(published_at=None, not_before=waiting.created_at)
        published = BatchItem.objects.filter(batch_id=waiting.id, published_at__isnull=False)
        wait_until(published.exists, lambda: "not published", seconds=5)
        assert Batch.objects.filter(id=deleted.id).exists()
    wait_until(lambda: not Batch.objects.filter(id=deleted.id).exists(), lambda: "not removed")
    sweeper.stop()
    thread.join()


def test_without_an_open_batch_one_statement_is_all_that_the_sweeper_runs(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    drain_publisher()
    statements: list[str] = []

    def hear(execute: Callable[..., object], statement: str, *rest: object) -> object:
        statements.append(statement)
        return execute(statement, *rest)

    sweeper = Sweeper()
    with connection.execute_wrapper(hear):
        assert sweeper._acquire_lock()
        statements.clear()
        sweeper._run_once()
        while_open = len(statements)
        cancel_batch(batch)
        sweeper._next_sweep = 0.0
        statements.clear()
        sweeper._run_once()
    connection.close()
    assert while_open > 3
    assert statements == [sweep._BACKLOG]


def holder_is_waited_for(holder: psycopg.Connection[tuple[object, ...]]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))",
            [holder.info.backend_pid],
        )
        return bool(cursor.fetchone()[0])


def test_the_uptime_starts_anew_after_a_database_was_suspended(settings: Settings) -> None:
    settings.RELAY_WORKER_LOST_S = 1
    uptime = DatabaseUptime()
    with connection.execute_wrapper(uptime):
        wait_until(uptime.covers_lost_timeout, lambda: "never", seconds=5)
        execute("SELECT pg_sleep(0.6)")
        assert not uptime.covers_lost_timeout()
        wait_until(uptime.covers_lost_timeout, lambda: "never", seconds=5)


def test_nobody_is_declared_lost_by_a_query_during_which_the_database_was_suspended(
    catalog: SimpleNamespace,
) -> None:
    item = claimed(submit(catalog))
    reclaim_lost_items(may_declare_lost=lambda: False)
    assert state(item) == "running"
