"""Resubmitting a batch's failed items as a new batch of the same dialect."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batches.completion.require_ended import require_ended
from batches.models import BatchItem
from batches.models.dialect_traits import traits_of
from batches.models.item import FAILED
from batches.models.public_ids import public_id
from batches.payloads import PayloadReadError, PayloadStoreUnavailable, open_store
from batches.states import ItemState
from batches.submission.accept import accept_batch
from batches.submission.failed_item_filter import FailedItemFilter
from batches.submission.submission import Submission
from relaybatch.http.errors import InvalidRequest, Unavailable
from routing.credentials.credential import Credential

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from batches.models import Batch

# The key in the new batch's metadata, where its dialect has metadata.
RETRY_OF = "retry_of"
# To read so much in vain costs less than to read once more.
MAX_GAP_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class _FailedItem:
    custom_id: str | None
    offset: int
    length: int


_FIELDS = ("custom_id", "request_offset", "request_length")


def build_resubmission(batch: Batch, item_filter: FailedItemFilter) -> Submission:
    """Raises Conflict before the batch's end, InvalidRequest when nothing failed, Unavailable without payloads."""
    require_ended(batch, then="its failed items can be retried when it has")
    failed = _failed_items(batch, item_filter)
    if not failed:
        asked = "" if item_filter == FailedItemFilter() else " in the way that was asked for"
        raise InvalidRequest(f"No item of this batch failed{asked}.", code="nothing_failed")
    return Submission(
        dialect=batch.dialect,
        shape=batch.shape,
        requests=_read_requests(batch, failed),
        custom_ids=[item.custom_id for item in failed if item.custom_id is not None],
        max_attempts=batch.max_attempts,
        on_rate_limit=batch.on_rate_limit,
        lifetime_seconds=_lifetime_seconds(batch),
        metadata=_metadata(batch),
        upstream_headers=batch.upstream_headers,
        input_file_id=batch.input_file_id,
        output_lifetime_seconds=batch.output_lifetime_seconds,
    )


def resubmit_as_owner(batch: Batch) -> uuid.UUID:
    """Resubmit all failed items with the owner, credential and policy that the batch recorded; the new batch's id.

    For operators, who have no credential of the owner's. Raises as `build_resubmission` and `accept_batch` do.
    """
    accepted = accept_batch(
        build_resubmission(batch, FailedItemFilter()),
        credential=_recorded_credential(batch),
        replay_key=None,
        render=lambda new: (202, new.id.bytes),
    )
    return uuid.UUID(bytes=accepted.body)


def _metadata(batch: Batch) -> Mapping[str, str]:
    if not traits_of(batch.dialect).has_metadata:
        return {}
    metadata: dict[str, str] = batch.metadata
    return metadata | {RETRY_OF: public_id(batch.dialect, batch.id)}


def _recorded_credential(batch: Batch) -> Credential:
    # Whether it still works is checked when an item runs.
    return Credential(
        owner=batch.owner.name,
        kind=batch.credential_kind,
        id=batch.credential_id,
        principal_kind=batch.principal_kind,
        principal_id=batch.principal_id,
        policy_id=batch.policy_id,
        project_id=batch.project_id,
        team_id=batch.team_id,
    )


def _failed_items(batch: Batch, item_filter: FailedItemFilter) -> list[_FailedItem]:
    # Chosen here and not by the database, to which a caller's list of any length would be sent.
    codes, idxs, custom_ids = item_filter.error_code, item_filter.idx, item_filter.custom_id
    rows = BatchItem.objects.of(batch).filter(FAILED).values_list("idx", "state", "error_code", *_FIELDS)
    return [
        _FailedItem(custom_id, *place)
        for idx, state, code, custom_id, *place in rows
        if (state == ItemState.DISCARDED if codes is None else code.encode() in codes)
        and (idxs is None or idx in idxs)
        and (custom_ids is None or (custom_id is not None and custom_id.encode() in custom_ids))
    ]


def _read_requests(batch: Batch, failed: Sequence[_FailedItem]) -> list[memoryview]:
    """Read what lies close together at once, and nothing of what lies between far ones."""
    requests: list[memoryview] = []
    try:
        store = open_store()
        for span in _spans(failed):
            start, end = span[0].offset, span[-1].offset + span[-1].length
            packed = memoryview(store.read_request(batch.id, offset=start, length=end - start))
            requests += [packed[item.offset - start : item.offset - start + item.length] for item in span]
    except (PayloadReadError, PayloadStoreUnavailable) as error:
        raise Unavailable(
            "The requests of this batch cannot be read; try again later.", code="store_unavailable"
        ) from error
    return requests


def _spans(failed: Sequence[_FailedItem]) -> Iterator[list[_FailedItem]]:
    """Group the items, which are in the order of their requests."""
    span: list[_FailedItem] = []
    for item in failed:
        if span and item.offset - (span[-1].offset + span[-1].length) > MAX_GAP_BYTES:
            yield span
            span = []
        span.append(item)
    yield span


def _lifetime_seconds(batch: Batch) -> int | None:
    """As long as the first time, from now on."""
    return int((batch.expires_at - batch.created_at).total_seconds()) if batch.expires_at else None
