"""What the body of a create holds, each member as bytes: enough to tell whose dialect it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType

from relaybatch.http.errors import InvalidRequest
from relaybatch.http.json_scan import (
    MAX_DEPTH,
    Text,
    count_byte,
    decode_object,
    is_too_deep,
    opening_brackets,
    tokens,
    too_deep,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

# To tell how many elements there are, where it is about naming more bad items than the first one.
MAX_COUNTED_TOKENS = 1_000_000
# Commas in `requests`, of any depth: up to so many, the list is short enough to be cut without looking.
MAX_UNCHECKED_COMMAS = 50_000

Member: TypeAlias = Raw | UnsetType


class SubmissionBody(msgspec.Struct, frozen=True):
    """The members that any dialect knows; others are ignored. Of a doubled one the last counts."""

    shape: Member = UNSET
    requests: Member = UNSET
    input_file_id: Member = UNSET
    max_attempts: Member = UNSET
    on_rate_limit: Member = UNSET
    expires_in_seconds: Member = UNSET
    metadata: Member = UNSET

    def has(self, name: str) -> bool:
        return is_present(getattr(self, name))

    def member(self, name: str) -> Raw:
        """Only for a member that is there."""
        value: Raw = getattr(self, name)
        return value


def is_present(member: Member) -> TypeGuard[Raw]:
    """Null counts as absent."""
    return isinstance(member, Raw) and bytes(memoryview(member)[:4]) != b"null"


_body_decoder = msgspec.json.Decoder(SubmissionBody)
_list_decoder = msgspec.json.Decoder(list[Raw])


def parse_body(body: Text) -> SubmissionBody:
    """Raises InvalidRequest, code `invalid_json`, for anything but one strict JSON object."""
    parsed = decode_object(body, _body_decoder)
    inside = len(parsed.requests) if isinstance(parsed.requests, Raw) else 0
    if len(body) - inside > MAX_DEPTH and _is_deep_outside(body, parsed):
        raise too_deep()
    return parsed


def split_requests(body: SubmissionBody, *, max_items: int) -> list[Raw]:
    """Each request as the caller's bytes. Raises InvalidRequest unless it is a non-empty list within the limit."""
    if not body.has("requests"):
        raise InvalidRequest("`requests` is missing.", code="missing_field", param="requests")
    text = memoryview(body.member("requests"))
    if bytes(text[:1]) != b"[":
        raise InvalidRequest("`requests` must be a list.", param="requests")
    if count_byte(text, b",") > MAX_UNCHECKED_COMMAS:
        _check_item_count(text, max_items=max_items)
    requests = _list_decoder.decode(text)
    if not requests:
        raise InvalidRequest("`requests` must not be empty.", param="requests")
    require_item_count(requests, max_items=max_items)
    return requests


def require_item_count(requests: Sequence[Raw], *, max_items: int) -> None:
    if len(requests) > max_items:
        raise _too_many_items(str(len(requests)), max_items=max_items)


def _check_item_count(text: memoryview, *, max_items: int) -> None:
    """Before each item becomes a value of its own: `[1,1,1,…]` would take forty times the body's size.

    The decoder stops at the first item that is no object, and at the first one too many. A short list with such an
    item is left to who names every bad one.
    """
    seen = 0

    class Counted(msgspec.Struct, gc=False):
        def __post_init__(self) -> None:
            nonlocal seen
            seen += 1
            if seen > max_items:
                raise ValueError

    try:
        msgspec.json.Decoder(list[Counted]).decode(text)
    except msgspec.ValidationError:
        if seen > max_items:
            raise _too_many_items(f"more than {max_items}", max_items=max_items) from None
        if not _has_fewer_elements(text, max_items=max_items):
            param = f"requests[{seen}]"
            raise InvalidRequest(f"{param}: must be an object.", param=param) from None


def _has_fewer_elements(text: memoryview, *, max_items: int) -> bool:
    """Whether the list has at most so many elements, whatever they are. False where telling would take a second."""
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
    """Members that nobody reads may be deep as well; those of `requests` are looked at one by one."""
    brackets = opening_brackets(body)
    if isinstance(parsed.requests, Raw):
        brackets -= opening_brackets(memoryview(parsed.requests))
    return brackets > MAX_DEPTH and is_too_deep(body, around=0)
