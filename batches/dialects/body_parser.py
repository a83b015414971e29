"""What the body of a create holds, each member as bytes: enough to tell whose dialect it is in."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType

from relaybatch.http.errors import InvalidRequest
from relaybatch.http.json_scan import (
    MAX_DEPTH,
    Text,
    decode_object,
    is_too_deep,
    occurrences,
    opening_brackets,
    tokens,
    too_deep,
)

# To tell how many elements there are, where it is about naming more bad items than the first one.
TOKENS_TO_COUNT = 1_000_000
# Commas in `requests`, of any depth: up to so many, the list is short enough to be cut without looking.
SURELY_FEW = 50_000

Part: TypeAlias = Raw | UnsetType


class Wire(msgspec.Struct, frozen=True):
    """The members that any dialect knows; others are ignored. Of a doubled one the last counts."""

    shape: Part = UNSET
    requests: Part = UNSET
    input_file_id: Part = UNSET
    max_attempts: Part = UNSET
    on_rate_limit: Part = UNSET
    expires_in_seconds: Part = UNSET
    metadata: Part = UNSET

    def has(self, name: str) -> bool:
        return is_there(getattr(self, name))

    def part(self, name: str) -> Raw:
        """Only for a member that is there."""
        part: Raw = getattr(self, name)
        return part


def is_there(part: Part) -> TypeGuard[Raw]:
    """Null counts as absent."""
    return isinstance(part, Raw) and bytes(memoryview(part)[:4]) != b"null"


_wire = msgspec.json.Decoder(Wire)
_list = msgspec.json.Decoder(list[Raw])


def read_wire(body: Text) -> Wire:
    """Raises InvalidRequest, code `invalid_json`, for anything but one strict JSON object."""
    wire = decode_object(body, _wire)
    inside = len(wire.requests) if isinstance(wire.requests, Raw) else 0
    if len(body) - inside > MAX_DEPTH and _is_deep_outside(body, wire):
        raise too_deep()
    return wire


def cut_requests(wire: Wire, *, at_most: int) -> list[Raw]:
    """Each request as the caller's bytes. Raises InvalidRequest unless it is a non-empty list within the limit."""
    if not wire.has("requests"):
        raise InvalidRequest("`requests` is missing.", code="missing_field", param="requests")
    text = memoryview(wire.part("requests"))
    if bytes(text[:1]) != b"[":
        raise InvalidRequest("`requests` must be a list.", param="requests")
    if occurrences(text, b",") > SURELY_FEW:
        _require_few_objects(text, at_most=at_most)
    requests = _list.decode(text)
    if not requests:
        raise InvalidRequest("`requests` must not be empty.", param="requests")
    if len(requests) > at_most:
        raise _too_many(str(len(requests)), at_most=at_most)
    return requests


def _require_few_objects(text: memoryview, *, at_most: int) -> None:
    """Before each item becomes a value of its own: `[1,1,1,…]` would take forty times the body's size.

    The decoder stops at the first item that is no object, and at the first one too many. A short list with such an
    item is left to who names every bad one.
    """
    seen = 0

    class Counted(msgspec.Struct, gc=False):
        def __post_init__(self) -> None:
            nonlocal seen
            seen += 1
            if seen > at_most:
                raise ValueError

    try:
        msgspec.json.Decoder(list[Counted]).decode(text)
    except msgspec.ValidationError:
        if seen > at_most:
            raise _too_many(f"more than {at_most}", at_most=at_most) from None
        if not _is_surely_short(text, at_most=at_most):
            where = f"requests[{seen}]"
            raise InvalidRequest(f"{where}: must be an object.", param=where) from None


def _is_surely_short(text: memoryview, *, at_most: int) -> bool:
    """Whether the list has at most so many elements, whatever they are. False where telling would take a second."""
    depth = elements = 0
    for count, mark in enumerate(tokens(text)):
        if mark in b"[{":
            depth += 1
        elif mark in b"]}":
            depth -= 1
        elif mark == b"," and depth == 1:
            elements += 1
        if elements >= at_most or count > TOKENS_TO_COUNT:
            return False
    return True


def _too_many(number: str, *, at_most: int) -> InvalidRequest:
    return InvalidRequest(
        f"`requests` has {number} items; at most {at_most} are allowed.",
        code="too_many_items",
        param="requests",
    )


def _is_deep_outside(body: Text, wire: Wire) -> bool:
    """Members that nobody reads may be deep as well; those of `requests` are looked at one by one."""
    brackets = opening_brackets(body)
    if isinstance(wire.requests, Raw):
        brackets -= opening_brackets(memoryview(wire.requests))
    return brackets > MAX_DEPTH and is_too_deep(body, around=0)
