"""What the body of a create holds, each member as bytes: enough to tell whose dialect it is in."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from batches.strict_json import MAX_DEPTH, Text, decode_object, is_too_deep, too_deep
from relaybatch.errors import InvalidRequest

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
        """Null counts as absent."""
        part = getattr(self, name)
        return part is not UNSET and bytes(memoryview(part)[:4]) != b"null"

    def part(self, name: str) -> Raw:
        """Only for a member that is there."""
        part: Raw = getattr(self, name)
        return part


_wire = msgspec.json.Decoder(Wire)
_list = msgspec.json.Decoder(list[Raw])


def read_wire(body: Text) -> Wire:
    """Raises InvalidRequest, code `invalid_json`, for anything but one strict JSON object."""
    wire = decode_object(body, _wire)
    inside = len(wire.requests) if isinstance(wire.requests, Raw) else 0
    if len(body) - inside > MAX_DEPTH and _is_deep_outside(body, wire):
        raise too_deep()
    return wire


def cut_requests(wire: Wire) -> list[memoryview]:
    """Each request as the caller's bytes. Raises InvalidRequest unless it is a non-empty list."""
    if not wire.has("requests"):
        raise InvalidRequest("`requests` is missing.", code="missing_field", param="requests")
    try:
        requests = _list.decode(wire.part("requests"))
    except msgspec.ValidationError as error:
        raise InvalidRequest("`requests` must be a list.", param="requests") from error
    if not requests:
        raise InvalidRequest("`requests` must not be empty.", param="requests")
    return [memoryview(request) for request in requests]


def _is_deep_outside(body: Text, wire: Wire) -> bool:
    """Members that nobody reads may be deep as well; those of `requests` are looked at one by one."""
    whole = bytes(body)
    brackets = whole.count(b"[") + whole.count(b"{")
    if isinstance(wire.requests, Raw):
        inside = bytes(wire.requests)
        brackets -= inside.count(b"[") + inside.count(b"{")
    return brackets > MAX_DEPTH and is_too_deep(whole, around=0)
