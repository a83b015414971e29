"""Accepting a submission: all of it is stored, or nothing is."""

from __future__ import annotations

import contextlib
import itertools
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import connection, transaction

from batches.models import Batch
from batches.models.owner import lock_owner
from batches.payloads import PayloadStoreUnavailable, PayloadWriteError, open_store
from batches.publishing.publish import request_publish
from batches.submission.idempotency import Idempotency, store_response
from batches.submission.owner_quota import check_open_item_quota, get_or_create_owner
from batches.submission.resends import KeylessRequest, record_create
from relaybatch.db.clock import database_now
from relaybatch.db.outage import DATABASE_UNAVAILABLE
from relaybatch.http.errors import Forbidden, Unavailable
from relaybatch.ids import uuid7, uuid7_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batches.models import Owner
    from batches.payloads import BatchPayloads
    from batches.submission.submission import Submission
    from routing.credentials.credential import Credential

logger = logging.getLogger(__name__)

_COPY_ITEMS = """COPY batches_batchitem
(id, batch_id, owner_id, idx, custom_id, request_offset, request_length) FROM STDIN"""


@dataclass(frozen=True, slots=True)
class CreateResponse:
    """The response to a create: JSON."""

    status: int
    body: bytes


def accept_batch(
    submission: Submission,
    *,
    credential: Credential,
    replay_key: Idempotency | KeylessRequest | None,
    render: Callable[[Batch], tuple[int, bytes]],
) -> CreateResponse:
    """Store a batch, its items and their requests, and publish the first window after the commit.

    `replay_key`: under which the response is stored, for a request that comes again. Raises ReplayedResponse or
    Conflict (the Idempotency-Key was used before), TooManyRequests (too many open items) or Unavailable (the payload
    store can't take it); nothing is stored then. The caller has checked the credential.
    """
    owner = get_or_create_owner(credential.owner)
    check_open_item_quota(owner.id, len(submission.requests))
    batch = _new_batch(submission, owner=owner, credential=credential)
    response = CreateResponse(*render(batch))
    _store_requests(batch, submission)
    with _atomic_with_payloads(batch):
        if replay_key:
            _store_response(owner, replay_key, response)
        batch.save(force_insert=True)
        _copy_items(batch, submission)
        lock_owner(owner.id)
        check_open_item_quota(owner.id, 0)
        transaction.on_commit(lambda: request_publish(owner.id), robust=True)
    logger.info("batch accepted", extra={"batch_id": batch.id, "items": batch.total_items})
    return response


def _store_response(owner: Owner, replay_key: Idempotency | KeylessRequest, response: CreateResponse) -> None:
    status, body = response.status, response.body
    if isinstance(replay_key, KeylessRequest):
        record_create(owner, replay_key, status=status, body=body)
    else:
        store_response(owner, replay_key, status=status, body=body)


def _new_batch(submission: Submission, *, owner: Owner, credential: Credential) -> Batch:
    if credential.policy_id is None:
        raise Forbidden("This credential has no policy, so it may not create batches.", code="no_policy")
    now = database_now()
    lifetime = submission.lifetime_seconds
    return Batch(
        id=uuid7(),
        dialect=submission.dialect,
        shape=submission.shape,
        owner=owner,
        policy_id=credential.policy_id,
        project_id=credential.project_id,
        team_id=credential.team_id,
        principal_kind=credential.principal_kind,
        principal_id=credential.principal_id,
        credential_kind=credential.kind,
        credential_id=credential.id,
        total_items=len(submission.requests),
        max_attempts=submission.max_attempts,
        on_rate_limit=submission.on_rate_limit,
        metadata=dict(submission.metadata),
        upstream_headers=dict(submission.upstream_headers),
        created_at=now,
        expires_at=now + timedelta(seconds=lifetime) if lifetime else None,
    )


def _store_requests(batch: Batch, submission: Submission) -> None:
    # Payloads first, rows second: what a crash leaves between the two is an object that the sweeper removes.
    try:
        store = open_store()
        store.check()
    except PayloadStoreUnavailable as error:
        raise _store_unavailable(error) from error
    try:
        _put_requests(store, batch, submission)
    except BaseException:
        _discard(batch)
        raise


@contextlib.contextmanager
def _atomic_with_payloads(batch: Batch) -> Iterator[None]:
    """Run a transaction, and discard the batch's payloads after a roll-back."""
    reached_commit = False
    try:
        with transaction.atomic():
            yield
            reached_commit = True
    except BaseException:
        # A commit that failed may have succeeded before the connection dropped: then the payloads are needed.
        if not reached_commit:
            _discard(batch)
        raise


def _discard(batch: Batch) -> None:
    # As far as it can be done now: the sweeper does the rest.
    with contextlib.suppress(PayloadWriteError, PayloadStoreUnavailable, *DATABASE_UNAVAILABLE):
        open_store().discard(batch.id)


def _put_requests(store: BatchPayloads, batch: Batch, submission: Submission) -> None:
    try:
        store.put_requests(batch.id, submission.requests)
        # Checked again: the volume may have been unmounted just before.
        store.check()
    except (PayloadStoreUnavailable, PayloadWriteError) as error:
        raise _store_unavailable(error) from error


def _store_unavailable(error: Exception) -> Unavailable:
    logger.error("submission not stored", exc_info=error)
    return Unavailable("The requests could not be stored; try again later.", code="store_unavailable")


def _copy_items(batch: Batch, submission: Submission) -> None:
    # COPY: 50,000 INSERTs would take ten times as long. Columns that are not named get the database's defaults.
    custom_ids = submission.custom_ids or itertools.repeat(None)
    offset = 0
    rows = zip(uuid7_run(batch.total_items), submission.requests, custom_ids, strict=False)
    with connection.cursor() as cursor, cursor.copy(_COPY_ITEMS) as copy:
        for idx, (item_id, request, custom_id) in enumerate(rows):
            copy.write_row((item_id, batch.id, batch.owner_id, idx, custom_id, offset, len(request)))
            offset += len(request)
