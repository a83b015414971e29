"""Which failed items a retry takes: the body of `POST …/retry`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from msgspec import UNSET, Raw

from relaybatch.http.body.json_member import Member, is_present
from relaybatch.http.body.json_scan import decode_object, is_too_deep, max_element_count, too_deep
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batches.models import Batch
    from relaybatch.http.body.json_scan import Text

# Longer than any custom_id in JSON: 512 characters of two escapes each.
MAX_ENTRY_BYTES = 2 + 512 * 12


class FailedItemFilter(msgspec.Struct, frozen=True):
    """Which of the failed items: those that match everything given; every discarded one where nothing is given.

    Expired and cancelled items did not fail: they are taken only where `error_code` names them. Strings are kept as
    UTF-8, since a `str` may take four times as much memory.
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


def parse_item_filter(body: Text, batch: Batch) -> FailedItemFilter:
    """Parse the body; an empty one selects every discarded item of the batch. Raises InvalidRequest."""
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
    """Entries that are longer than any item's are left out: they match nothing."""
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
    """Split a list into its entries; anything else is one entry. The list is counted before it is decoded."""
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
