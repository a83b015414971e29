"""The hot queries read an index, also in a large table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction
from django.utils import timezone

from batches.execution import claim
from batches.execution.retry_policy import settle_completed
from batches.execution.settling import settle_statement
from batches.models import BatchItem, item
from batches.publishing import lost_messages, owner_window
from batches.sweeper import sweep
from relaybatch.ids import uuid7
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from batches.models import Batch

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def batch() -> Batch:
    """One batch of 2,000 items among 22,000, with statistics."""
    catalog = make_catalog("http://127.0.0.1:9")
    submit(make_caller(catalog), *[chat_body()] * 10_000)
    submit(catalog, *[chat_body()] * 10_000)
    batch = submit(catalog, *[chat_body()] * 2_000)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE batches_batchitem, batches_batch")
    return batch


def complete_share(share: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE batches_batchitem SET state = 'completed', finished_at = now(), response_length = 2"
            " WHERE hashtext(id::text) & 1023 < %s",
            [1024 * share],
        )
        cursor.execute("VACUUM ANALYZE batches_batchitem")


def plan(statement: str, parameters: dict[str, object]) -> str:
    """With an index wherever one can serve: whether it pays in a table of this size is another question, and how much
    of it PostgreSQL knows to be visible to all depends on what else ran.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {statement}", parameters)  # type: ignore[arg-type]
        return "\n".join(row[0] for row in cursor.fetchall())


def test_every_hot_statement_reads_the_index_made_for_it(batch: Batch) -> None:
    row = BatchItem.objects.of(batch).first()
    assert row
    BatchItem.objects.of(batch).filter(idx=1).update(published_at=timezone.now())
    held = claim.claim_item(BatchItem.objects.of(batch)[1].id, worker_id=uuid7())
    assert held
    plans = {
        "batches_batchitem_pkey": plan(
            claim._CLAIM_UNLOCKED, {"items": [row.id], "worker": uuid7(), "breaker_open": "breaker_open"}
        ),
        "batches_batchitem_pkey on": plan(
            settle_statement.SETTLE_ONES_OF_MANY,
            settle_statement.settle_parameters(
                [(held, settle_completed(response_length=2, response=b"{}", event=None))]
            ),
        ),
        "item_in_flight": plan(
            claim._HELD_BY_LOST_WORKERS,
            {"lost": 30, "exclude": [], "limit": 10, "breaker_open": "breaker_open"},
        ),
        "item_due": plan(
            owner_window._MARK_PUBLISHED,
            {"owner": batch.owner_id, "window": None, "minimum": 16, "lost": 30},
        ),
        "item_in_flight on": plan(lost_messages._MARK_LOST, {"queued": 0}),
        "item_waiting": plan(sweep._BACKLOG, {}),
    }
    for index, text in plans.items():
        assert index in text, text
        assert "Seq Scan on batches_batchitem" not in text, text


@pytest.mark.parametrize("settled_share", [0.0, 0.5, 0.99, 1.0])
def test_whether_another_item_waits_is_read_from_the_end_of_the_index(
    batch: Batch, settled_share: float
) -> None:
    complete_share(settled_share)
    probe = settle_statement._NOT_LAST.replace("i.owner_id", "%(owner)s").replace("i.batch_id", "%(batch)s")
    text = plan(f"SELECT {probe}", {"owner": batch.owner_id, "batch": batch.id})
    assert "Backward using item_due" in text, text
    assert "Filter" not in text, text


@pytest.mark.parametrize("settled_share", [0.0, 0.5, 0.99, 1.0])
def test_counts_read_no_index_that_has_the_completed_items(batch: Batch, settled_share: float) -> None:
    complete_share(settled_share)
    text = plan(item._COUNTS.replace("%s", "%(batches)s"), {"batches": [batch.id]})
    read = set(re.findall(r"Scan (?:using|on) (\w+)", text)) - {"batches_batch_pkey", "batches_batchitem"}
    assert read == {"item_due", "item_in_flight", "item_failed"}, text
    assert "Seq Scan on batches_batchitem" not in text, text


def test_of_items_that_were_never_claimed_the_first_one_alone_is_read(batch: Batch) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE) " + item._COUNTS, [[batch.id]])
        rows = [
            float(found)
            for line in cursor.fetchall()
            for found in re.findall(r"actual .*rows=([\d.]+)", line[0])
        ]
    assert max(rows) <= owner_window.MIN_WINDOW_ITEMS, "of 2,000"


def test_state_letters_read_an_index_alone(batch: Batch) -> None:
    letters = "SELECT string_agg(substr(state, 2, 1), '' ORDER BY idx) FROM batches_batchitem WHERE batch_id = %(id)s"
    text = plan(letters, {"id": batch.id})
    assert "Index Only Scan using item_once" in text, text


def test_with_statistics_of_an_empty_table_publishing_does_not_walk_over_all_that_is_due() -> None:
    """As in the first minutes of a deployment: PostgreSQL expects no row where thousands are."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE batches_batchitem")
    batch = submit(make_catalog("http://127.0.0.1:9"), *[chat_body()] * 3_000)
    text = analyzed(
        owner_window._MARK_PUBLISHED, {"owner": batch.owner_id, "window": 40, "minimum": 16, "lost": 30}
    )
    assert "Update on batches_batchitem" in text, text
    assert not re.search(r"Rows Removed by (Index Recheck|Filter): \d{3}", text), text


def analyzed(statement: str, parameters: dict[str, object]) -> str:
    """The plan as it was run; what it changed is rolled back."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, COSTS OFF) {statement}", parameters)  # type: ignore[arg-type]
        transaction.set_rollback(True)
        return "\n".join(row[0] for row in cursor.fetchall())
