"""Parse the body of a create just far enough to choose its dialect: each member stays as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw

from relaybatch.http.body.json_member import Member, is_present
from relaybatch.http.body.json_scan import (
    MAX_DEPTH,
    Text,
    count_byte,
    decode_object,
    is_too_deep,
    opening_brackets,
    tokens,
    too_deep,
)
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

# Tokens that are read to count the elements of a list. A longer list has only its first bad item named.
MAX_COUNTED_TOKENS = 1_000_000
# Commas in `requests`, at any depth. A list with no more than these is split without counting its elements first.
MAX_UNCHECKED_COMMAS = 50_000


class SubmissionBody(msgspec.Struct, frozen=True):
    """The members that some dialect knows; others are ignored. Of a duplicate, the last one counts."""

    shape: Member = UNSET
    requests: Member = UNSET
    input_file_id: Member = UNSET
    endpoint: Member = UNSET
    completion_window: Member = UNSET
    output_expires_after: Member = UNSET
    max_attempts: Member = UNSET
    on_rate_limit: Member = UNSET
    expires_in_seconds: Member = UNSET
    metadata: Member = UNSET

    def has(self, name: str) -> bool:
        return is_present(getattr(self, name))

    def member(self, name: str) -> Raw:
        """The member's bytes. Only for a member that is present."""
        value: Raw = getattr(self, name)
        return value


_body_decoder = msgspec.json.Decoder(SubmissionBody)
_list_decoder = msgspec.json.Decoder(list[Raw])


def parse_body(body: Text) -> SubmissionBody:
    """Parse one strict JSON object. Raises InvalidRequest with code `invalid_json` for anything else."""
    parsed = decode_object(body, _body_decoder)
    inside = len(parsed.requests) if isinstance(parsed.requests, Raw) else 0
    if len(body) - inside > MAX_DEPTH and _is_deep_outside(body, parsed):
        raise too_deep()
    return parsed


def split_requests(body: SubmissionBody, *, max_items: int, max_split: int = 0) -> list[Raw]:
    """Split `requests` into the caller's bytes of each.

    Raises InvalidRequest unless it is a non-empty list of at most `max_items`. A caller with a check of its own before
    that one (`require_item_count`) lets up to `max_split` pass, if that is more.
    """
    max_split = max(max_split, max_items)
    if not body.has("requests"):
        raise InvalidRequest("`requests` is missing.", code="missing_field", param="requests")
    text = memoryview(body.member("requests"))
    if bytes(text[:1]) != b"[":
        raise InvalidRequest("`requests` must be a list.", param="requests")
    if count_byte(text, b",") > MAX_UNCHECKED_COMMAS:
        _count_before_splitting(text, max_split=max_split, max_items=max_items)
    requests = _list_decoder.decode(text)
    if not requests:
        raise InvalidRequest("`requests` must not be empty.", param="requests")
    if len(requests) > max_split:
        require_item_count(requests, max_items=max_items)
    return requests


def require_item_count(requests: Sequence[Raw], *, max_items: int) -> None:
    if len(requests) > max_items:
        raise _too_many_items(str(len(requests)), max_items=max_items)


def _count_before_splitting(text: memoryview, *, max_split: int, max_items: int) -> None:
    """Count the items before they are split. Raises InvalidRequest at the first one too many, or that is no object.

    A short list with a bad item passes: its dialect names every bad item.
    """
    # Split, each item becomes a Python object: `[1,1,1,…]` would take forty times the size of the body.
    seen = 0

    class Counted(msgspec.Struct, gc=False):
        def __post_init__(self) -> None:
            nonlocal seen
            seen += 1
            if seen > max_split:
                raise ValueError

    try:
        msgspec.json.Decoder(list[Counted]).decode(text)
    except msgspec.ValidationError:
        if seen > max_split:
            raise _too_many_items(f"more than {max_split}", max_items=max_items) from None
        if not _is_within_limit(text, max_items=max_split):
            param = f"requests[{seen}]"
            raise InvalidRequest(f"{param}: must be an object.", param=param) from None


def _is_within_limit(text: memoryview, *, max_items: int) -> bool:
    """Whether the list has at most `max_items` elements, of any kind. False too where counting would take a second."""
    depth = elements = 0
    for count, token in enumerate(tokens(text)):
        if token in b"[{":
            depth += 1
        elif token in b"]}":
            depth -= 1
        elif token == b"," and depth == 1:
            elements += 1
        if elements >= max_items or count > MAX_COUNTED_TOKENS:
            return False
    return True


def _too_many_items(number: str, *, max_items: int) -> InvalidRequest:
    return InvalidRequest(
        f"`requests` has {number} items; at most {max_items} are allowed.",
        code="too_many_items",
        param="requests",
    )


def _is_deep_outside(body: Text, parsed: SubmissionBody) -> bool:
    """Whether anything but `requests` is nested too deep. Each request is checked by itself, by its dialect."""
    brackets = opening_brackets(body)
    if isinstance(parsed.requests, Raw):
        brackets -= opening_brackets(memoryview(parsed.requests))
    return brackets > MAX_DEPTH and is_too_deep(body, around=0)
