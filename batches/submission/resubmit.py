"""Sending a finished batch's failed items again, as a new batch of the same dialect."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from msgspec import UNSET, Raw

from batches.models import BatchItem, ItemState
from batches.models.item import FAILED
from batches.payloads import PayloadReadError, PayloadStoreUnavailable, open_store
from batches.submission.accept import accept_batch
from batches.submission.submission import Submission
from relaybatch.http.errors import Conflict, InvalidRequest, Unavailable
from relaybatch.http.json_member import Member, is_present
from relaybatch.http.json_scan import decode_object, is_too_deep, max_element_count, too_deep
from routing.credentials.credential import Credential

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batches.models import Batch
    from relaybatch.http.json_scan import Text

# Dialects without metadata of their own have no place to say it.
RETRY_OF = "retry_of"
DIALECTS_WITH_METADATA = frozenset({"relay", "openai"})

# Longer than any custom_id in JSON: 512 characters of two escapes each.
MAX_ENTRY_BYTES = 2 + 512 * 12


class FailedItemFilter(msgspec.Struct, frozen=True):
    """Which of the failed items; all that is given must fit. Nothing given: every discarded one.

    Expired and cancelled items did not fail: they are taken only where `error_code` names them. Texts are in UTF-8,
    as a string may take four times as much.
    """

    error_code: frozenset[bytes] | None = None
    idx: frozenset[int] | None = None
    custom_id: frozenset[bytes] | None = None


class _Members(msgspec.Struct, frozen=True):
    error_code: Member = UNSET
    idx: Member = UNSET
    custom_id: Member = UNSET


_members_decoder = msgspec.json.Decoder(_Members)
_list_decoder = msgspec.json.Decoder(list[Raw])
_string_decoder = msgspec.json.Decoder(str)
_integer_decoder = msgspec.json.Decoder(int)


@dataclass(frozen=True, slots=True)
class _FailedItem:
    custom_id: str | None
    offset: int
    length: int


_FIELDS = ("custom_id", "request_offset", "request_length")


def parse_item_filter(body: Text, batch: Batch) -> FailedItemFilter:
    """An empty body selects every failed item of the batch. Raises InvalidRequest."""
    if not body:
        return FailedItemFilter()
    members = decode_object(body, _members_decoder)
    if is_too_deep(body, around=0):
        raise too_deep()
    max_entries = max(batch.total_items, settings.RELAY_BATCH_MAX_ITEMS, settings.RELAY_CUSTOM_ID_MAX_ITEMS)
    return FailedItemFilter(
        error_code=_parse_strings(members.error_code, field="error_code", max_entries=max_entries),
        idx=_parse_integers(members.idx, field="idx", max_entries=max_entries),
        custom_id=_parse_strings(members.custom_id, field="custom_id", max_entries=max_entries),
    )


def _parse_strings(member: Member, *, field: str, max_entries: int) -> frozenset[bytes] | None:
    """What is too long for any item's is left out: it selects nothing."""
    if not is_present(member):
        return None
    with _raise_for_wrong_type(field, expected="a string"):
        entries = _split_entries(member, field=field, max_entries=max_entries)
        if not all(bytes(memoryview(entry)[:1]) == b'"' for entry in entries):
            raise msgspec.ValidationError
        return frozenset(
            _string_decoder.decode(entry).encode() for entry in entries if len(entry) <= MAX_ENTRY_BYTES
        )


def _parse_integers(member: Member, *, field: str, max_entries: int) -> frozenset[int] | None:
    if not is_present(member):
        return None
    with _raise_for_wrong_type(field, expected="a whole number"):
        return frozenset(
            _integer_decoder.decode(entry)
            for entry in _split_entries(member, field=field, max_entries=max_entries)
        )


def _split_entries(member: Raw, *, field: str, max_entries: int) -> list[Raw]:
    """One, or those of a list, which are counted before each becomes a value of its own."""
    if bytes(memoryview(member)[:1]) != b"[":
        return [member]
    if max_element_count(member) > max_entries:
        raise InvalidRequest(
            f"`{field}` has more entries than a batch has items: at most {max_entries} are allowed.",
            code="too_many_items",
            param=field,
        )
    return _list_decoder.decode(member)


@contextlib.contextmanager
def _raise_for_wrong_type(field: str, *, expected: str) -> Iterator[None]:
    try:
        yield
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"`{field}` must be {expected}, or a list of such.", param=field) from error


def build_resubmission(batch: Batch, item_filter: FailedItemFilter) -> Submission:
    """Raises Conflict before the batch's end, InvalidRequest when nothing failed, Unavailable without payloads."""
    if batch.ended_at is None:
        raise Conflict("This batch has not ended yet; its failed items can be retried when it has.")
    failed = _failed_items(batch, item_filter)
    if not failed:
        raise InvalidRequest(
            "No item of this batch failed in the way that was asked for.", code="nothing_failed"
        )
    metadata = batch.metadata | {RETRY_OF: str(batch.id)} if batch.dialect in DIALECTS_WITH_METADATA else {}
    return Submission(
        dialect=batch.dialect,
        shape=batch.shape,
        requests=_read_requests(batch, failed),
        custom_ids=[item.custom_id for item in failed if item.custom_id is not None],
        max_attempts=batch.max_attempts,
        on_rate_limit=batch.on_rate_limit,
        lifetime_seconds=_lifetime_seconds(batch),
        metadata=metadata,
        upstream_headers=batch.upstream_headers,
    )


def resubmit_as_owner(batch: Batch) -> uuid.UUID:
    """The id of a new batch of all failed items, whose it was before: owner, credential and policy are those of then.

    For operators, who have no credential of the owner's. Raises as `retry_submission` and `accept_batch` do.
    """
    accepted = accept_batch(
        build_resubmission(batch, FailedItemFilter()),
        credential=_recorded_credential(batch),
        replay_key=None,
        render=lambda new: (202, new.id.bytes),
    )
    return uuid.UUID(bytes=accepted.body)


def _recorded_credential(batch: Batch) -> Credential:
    """Whether it still works is looked at when an item runs."""
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
    """Chosen here and not by the database, to which a caller's list of any length would be sent."""
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
    try:
        packed = memoryview(open_store().read_requests(batch.id))
    except (PayloadReadError, PayloadStoreUnavailable) as error:
        raise Unavailable(
            "The requests of this batch cannot be read; try again later.", code="store_unavailable"
        ) from error
    return [packed[item.offset : item.offset + item.length] for item in failed]


def _lifetime_seconds(batch: Batch) -> int | None:
    """As long as the first time, from now on."""
    return int((batch.expires_at - batch.created_at).total_seconds()) if batch.expires_at else None
