"""Accepting a submission: all of it is stored, or nothing is."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, LiteralString

from django.db import transaction

from batches.models import Batch
from batches.submission.owner_quota import check_open_item_quota, get_or_create_owner
from batches.submission.store_requests import commit_or_discard, store_requests
from batches.submission.store_rows import MAX_SMALL_ITEMS, NewBatch, store_file_batch, store_rows, store_small
from relaybatch.db.pipeline import execute_prepared
from relaybatch.http.errors import Forbidden
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable
    from datetime import datetime

    from batches.submission.idempotency import Idempotency
    from batches.submission.resends import KeylessRequest
    from batches.submission.submission import Submission
    from routing.credentials.credential import Credential

logger = logging.getLogger(__name__)

_CONTEXT: LiteralString = """
SELECT clock_timestamp(), (SELECT id FROM batches_owner WHERE name = %s), (SELECT value FROM batches_payloadstoremark)
"""


@dataclass(frozen=True, slots=True)
class _Context:
    """The database's clock, the owner, and the value of the payload store's marker (None before its first use)."""

    now: datetime
    owner_id: int
    store_mark: str | None


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
    if credential.policy_id is None:
        raise Forbidden("This credential has no policy, so it may not create batches.", code="no_policy")
    context = _read_context(credential.owner)
    batch = _new_batch(submission, credential=credential, policy_id=credential.policy_id, context=context)
    response = CreateResponse(*render(batch))
    new = NewBatch(batch, submission, replay_key, response.status, response.body)
    _store(new, store_mark=context.store_mark)
    logger.info("batch accepted", extra={"batch_id": batch.id, "items": batch.total_items})
    return response


def _read_context(owner_name: str) -> _Context:
    now, owner_id, store_mark = execute_prepared(_CONTEXT, [owner_name])[0]
    return _Context(now, owner_id or get_or_create_owner(owner_name).id, store_mark)


def _store(new: NewBatch, *, store_mark: str | None) -> None:
    """Store the requests, then the rows. Large submissions are checked against the quota before that, too."""
    if not new.submission.requests:
        with transaction.atomic():
            store_file_batch(new)
        return
    is_small = new.batch.total_items <= MAX_SMALL_ITEMS
    if not is_small:
        check_open_item_quota(new.batch.owner_id, new.batch.total_items)
    store_requests(new.batch.id, new.submission.requests, store_mark=store_mark)
    if is_small:
        with commit_or_discard(new.batch):
            if store_small(new):
                return
    with commit_or_discard(new.batch):
        store_rows(new)


def _new_batch(
    submission: Submission, *, credential: Credential, policy_id: uuid.UUID, context: _Context
) -> Batch:
    lifetime = submission.lifetime_seconds
    return Batch(
        id=uuid7(),
        dialect=submission.dialect,
        shape=submission.shape,
        owner_id=context.owner_id,
        policy_id=policy_id,
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
        created_at=context.now,
        expires_at=context.now + timedelta(seconds=lifetime) if lifetime else None,
        input_file_id=submission.input_file_id,
        # A resubmission of some requests of the file: they are known.
        in_progress_at=context.now if submission.input_file_id and submission.requests else None,
        output_lifetime_seconds=submission.output_lifetime_seconds,
    )
