"""What is shown of a batch beyond its row, which other queries read a moment later."""

from __future__ import annotations

from datetime import timedelta

import pytest

from batches.cancel import cancel_batch
from batches.models import Batch
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
