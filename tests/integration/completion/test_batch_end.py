"""A batch ends once, with the counts of its items, and only when none of them is open."""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from batches.completion.batch_end import (
    end_complete_batch,
    end_if_complete,
    lock_exclusive,
    lock_key,
)
from batches.execution.claim import claim_item
from batches.models import BatchItem
from relaybatch.ids import uuid7
from tests.support.rows.catalog import make_catalog
from tests.support.rows.item_outcomes import complete, discard
from tests.support.rows.submissions import chat_body, submit
from tests.support.run.races import run_concurrently
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from batches.models import Batch

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def batch() -> Batch:
    return submit(make_catalog("http://127.0.0.1:9"), chat_body(), chat_body())


def ends(batch: Batch) -> bool:
    with transaction.atomic():
        lock_exclusive(batch.id)
        return end_if_complete(batch.id)


def other_waits_for_the_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])


def test_it_stays_open_while_an_item_waits(batch: Batch) -> None:
    discard(batch, 0, error_code="timeout", error="x")
    assert not ends(batch)
    batch.refresh_from_db()
    assert (batch.ended_at, batch.final_counts) == (None, None)


def test_it_stays_open_while_an_item_runs(batch: Batch) -> None:
    discard(batch, 0, error_code="timeout", error="x")
    assert claim_item(BatchItem.objects.get(batch=batch, idx=1).id, worker_id=uuid7())
    assert not ends(batch)


def test_it_ends_once_with_the_counts_of_its_items(batch: Batch) -> None:
    discard(batch, 0, error_code="timeout", error="x")
    complete(batch, 1, b"{}")
    assert ends(batch)
    batch.refresh_from_db()
    assert batch.final_counts == {"discarded": 1, "completed": 1}
    ended_at = batch.ended_at
    assert not ends(batch)
    batch.refresh_from_db()
    assert batch.ended_at == ended_at


def test_of_eight_that_end_it_at_the_same_moment_one_does(batch: Batch) -> None:
    discard(batch, 0, error_code="timeout", error="x")
    discard(batch, 1, error_code="timeout", error="x")
    assert sum(run_concurrently([functools.partial(ends, batch)] * 8)) == 1


def test_two_last_items_that_end_at_the_same_moment_do_not_miss_each_other(batch: Batch) -> None:
    """Each makes its own item final and looks for the other, in a transaction of its own; without the lock, both would
    have looked before either commits."""
    looked: list[int] = []

    def finish(idx: int) -> bool:
        with transaction.atomic():
            lock_exclusive(batch.id)
            discard(batch, idx, error_code="timeout", error="x")
            ended = end_if_complete(batch.id)
            looked.append(idx)
            wait_until(lambda: len(looked) == 2 or other_waits_for_the_lock(), lambda: "where is the other?")
            return ended

    assert sorted(run_concurrently([functools.partial(finish, idx) for idx in (0, 1)])) == [False, True]


def test_end_complete_batch_takes_the_lock_itself(batch: Batch) -> None:
    discard(batch, 0, error_code="timeout", error="x")
    end_complete_batch(batch.id)
    discard(batch, 1, error_code="timeout", error="x")
    end_complete_batch(batch.id)
    batch.refresh_from_db()
    assert batch.final_counts == {"discarded": 2}


def test_lock_keys_are_64_bits_with_a_sign_and_differ_by_the_random_half() -> None:
    assert lock_key(uuid.UUID(int=2**63)) == -(2**63)
    assert lock_key(uuid.UUID(int=2**63 - 1)) == 2**63 - 1
    with connection.cursor() as cursor, transaction.atomic():
        for value in (2**63, 2**63 - 1, 0):
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key(uuid.UUID(int=value))])
