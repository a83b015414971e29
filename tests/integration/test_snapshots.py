"""What is shown of a batch beyond its row, which other queries read a moment later."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from batches.cancel import cancel_batch
from batches.models import Batch, BatchItem
from batches.snapshots import snapshots_of
from tests.catalog import make_catalog
from tests.submissions import chat_body, submit

pytestmark = pytest.mark.django_db


def test_a_batch_that_ends_after_its_row_was_read_is_shown_as_ended() -> None:
    catalog = make_catalog("http://127.0.0.1:9")
    ends, goes_on = submit(catalog, chat_body(), chat_body()), submit(catalog)
    cancel_batch(Batch.objects.get(id=ends.id))
    ended, open_one = snapshots_of([ends, goes_on])

    assert ended.counts == {"cancelled": 2}
    assert ended.batch.ended_at is not None
    assert ended.batch.ended_at - ends.created_at < timedelta(minutes=1)
    assert (ended.batch.processing_status, ended.batch.final_counts) == ("ended", {"cancelled": 2})
    assert (open_one.counts, open_one.batch.ended_at) == ({"available": 1}, None)


def test_the_counts_of_an_open_batch_are_its_rows() -> None:
    """Of each state another number, of the available ones with and without a message."""
    catalog = make_catalog("http://127.0.0.1:9")
    batch, other = (submit(catalog, *[chat_body()] * 40) for _ in range(2))
    for state, idxs, more in (
        ("running", range(2), {"worker_id": uuid.uuid4()}),
        ("completed", range(2, 5), {"finished_at": batch.created_at, "response_length": 2}),
        ("discarded", range(5, 9), {"finished_at": batch.created_at, "error_code": "timeout"}),
        ("cancelled", range(9, 14), {"finished_at": batch.created_at}),
        ("expired", range(14, 20), {"finished_at": batch.created_at}),
        ("available", range(20, 27), {"published_at": batch.created_at}),
        ("available", range(27, 40), {"published_at": None}),
    ):
        BatchItem.objects.of(batch).filter(idx__in=idxs).update(state=state, **more)
    counts = BatchItem.objects.counts_by_batch([batch.id, other.id])
    assert counts[batch.id] == {
        "available": 20,
        "running": 2,
        "completed": 3,
        "discarded": 4,
        "cancelled": 5,
        "expired": 6,
    }
    assert counts[other.id] == {"available": 40}
