"""The requests of a new batch: stored before its rows, and discarded if these are not."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from django.db import transaction

from batches.payloads import PayloadStoreUnavailable, PayloadWriteError, open_store
from batches.publishing.publish import request_publish
from relaybatch.db.outage import DATABASE_UNAVAILABLE
from relaybatch.http.errors import Unavailable

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Sequence

    from batches.models import Batch
    from batches.payloads import BatchPayloads

logger = logging.getLogger(__name__)


def store_requests(
    batch_id: uuid.UUID, requests: Sequence[bytes | memoryview], *, store_mark: str | None
) -> None:
    """Store the requests durably. `store_mark`: what the store's marker must be, None if the database has none yet.

    What a crash leaves between this and the rows is an object that the sweeper removes. Raises Unavailable.
    """
    try:
        store = open_store()
        store.check(store_mark)
    except PayloadStoreUnavailable as error:
        raise _store_unavailable(error) from error
    try:
        _put_requests(store, batch_id, requests, store_mark=store_mark)
    except BaseException:
        _discard(batch_id)
        raise


@contextlib.contextmanager
def commit_or_discard(batch: Batch) -> Iterator[None]:
    """Run the transaction that stores the batch's rows; publish after it, or discard the requests after a roll-back."""
    reached_commit = False
    try:
        with transaction.atomic():
            yield
            transaction.on_commit(lambda: request_publish(batch.owner_id), robust=True)
            reached_commit = True
    except BaseException:
        # A commit that failed may have succeeded before the connection dropped: then the requests are needed.
        if not reached_commit:
            _discard(batch.id)
        raise


def _discard(batch_id: uuid.UUID) -> None:
    # As far as it can be done now: the sweeper does the rest.
    with contextlib.suppress(PayloadWriteError, PayloadStoreUnavailable, *DATABASE_UNAVAILABLE):
        open_store().discard(batch_id)


def _put_requests(
    store: BatchPayloads,
    batch_id: uuid.UUID,
    requests: Sequence[bytes | memoryview],
    *,
    store_mark: str | None,
) -> None:
    try:
        store.put_requests(batch_id, requests)
        # Checked again: the volume may have been unmounted just before.
        store.check(store_mark)
    except (PayloadStoreUnavailable, PayloadWriteError) as error:
        raise _store_unavailable(error) from error


def _store_unavailable(error: Exception) -> Unavailable:
    logger.error("submission not stored", exc_info=error)
    return Unavailable("The requests could not be stored; try again later.", code="store_unavailable")
