"""Accepting a submission: all of it is stored, or nothing is."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from batches.models import Batch
from batches.submission.create_context import read_create_context
from batches.submission.owner_quota import check_open_item_quota
from batches.submission.store_requests import commit_or_discard, store_requests
from batches.submission.store_rows import MAX_SMALL_ITEMS, NewBatch, store_file_batch, store_rows, store_small
from relaybatch.http.errors import Forbidden
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from batches.submission.create_context import CreateContext
    from batches.submission.replays import ReplayKey
    from batches.submission.submission import Submission
    from routing.credentials.credential import Credential

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CreateResponse:
    """The response to a create: JSON."""

    status: int
    body: bytes


def accept_batch(
    submission: Submission,
    *,
    credential: Credential,
    replay_key: ReplayKey | None,
    render: Callable[[Batch], tuple[int, bytes]],
) -> CreateResponse:
    """Store a batch, its items and their requests, and publish the first window after the commit.

    `replay_key`: under which the response is stored, for a request that comes again. Raises ReplayedResponse or
    Conflict (the Idempotency-Key was used before), TooManyRequests (too many open items) or Unavailable (the payload
    store can't take it); nothing is stored then. The caller has checked the credential.
    """
    if credential.policy_id is None:
        raise Forbidden("This credential has no policy, so it may not create batches.", code="no_policy")
    context = read_create_context(credential.owner)
    batch = _new_batch(submission, credential=credential, policy_id=credential.policy_id, context=context)
    response = CreateResponse(*render(batch))
    new = NewBatch(batch, submission, replay_key, response.status, response.body)
    _store(new, store_mark=context.store_mark)
    logger.info("batch accepted", extra={"batch_id": batch.id, "items": batch.total_items})
    return response


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
    submission: Submission, *, credential: Credential, policy_id: uuid.UUID, context: CreateContext
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
