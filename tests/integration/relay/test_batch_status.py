"""What a status holds beyond the row of its batch."""

from __future__ import annotations

import uuid

import pytest

from batches.models import BatchItem
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit

pytestmark = pytest.mark.django_db


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
