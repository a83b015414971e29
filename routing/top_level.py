"""The top-level members of a JSON object in bytes, found without reading the object into values.

A caller's item goes upstream byte for byte; only the value of its `model` may be replaced. So the place of that
value is needed, not a parsed body: numbers, key order and escapes would not survive one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

# Possessive quantifiers: no backtracking, so neither time nor memory grows faster than the text.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SPACE = rb"[ \t\r\n]*+"
_OPENING = re.compile(_SPACE + rb"\{" + _SPACE)
_KEY = re.compile(rb"(" + _STRING + rb")" + _SPACE + rb":" + _SPACE, re.DOTALL)
_FLAT_VALUE = re.compile(rb"(?:" + _STRING + rb"|[-+.0-9A-Za-z]++)", re.DOTALL)
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])", re.DOTALL)
_SEPARATOR = re.compile(_SPACE + rb"([,}])" + _SPACE)

# Every letter of "model" is U+0064 to U+006F: an escaped spelling of the key contains this.
_ESCAPED_LETTER = b"\\u006"


class Member(NamedTuple):
    """`body[value_start:value_end]` is the value, `body[key_start:key_end]` the quoted key as written."""

    key: str
    key_start: int
    key_end: int
    value_start: int
    value_end: int


def members(body: bytes) -> Iterator[Member]:
    """The members in their order, the same key as often as it stands there. ValueError where the text is no object.

    Only what is needed to find the members is checked: validate the body first. Depth costs no stack.
    """
    position = _match(_OPENING, body, 0).end()
    if body.startswith(b"}", position):
        return
    more = True
    while more:
        key = _match(_KEY, body, position)
        end = _end_of_value(body, key.end())
        yield Member(_decoded(key[1]), key.start(1), key.end(1), key.end(), end)
        separator = _match(_SEPARATOR, body, end)
        position, more = separator.end(), separator[1] == b","


def has_one_model(body: bytes) -> bool:
    """Whether an object that has a top-level `model` has only one, in whatever spelling (`"\\u006dodel"` is one)."""
    if _ESCAPED_LETTER not in body and body.count(b'"model"') == 1:
        return True
    return sum(member.key == "model" for member in members(body)) == 1


def with_model(body: bytes, upstream_name: str) -> bytes:
    """The body with the value of its first top-level `model` replaced, and every other byte kept."""
    for member in members(body):
        if member.key == "model":
            return body[: member.value_start] + msgspec.json.encode(upstream_name) + body[member.value_end :]
    raise ValueError("no model member")


def _end_of_value(body: bytes, start: int) -> int:
    if not body.startswith((b"{", b"["), start):
        return _match(_FLAT_VALUE, body, start).end()
    position, depth = start + 1, 1
    while depth:
        bracket = _match(_TO_BRACKET, body, position)
        depth += 1 if bracket[1] in b"{[" else -1
        position = bracket.end()
    return position


def _decoded(quoted: bytes) -> str:
    if b"\\" in quoted:
        return str(json.loads(quoted))
    return quoted[1:-1].decode(errors="replace")


def _match(pattern: re.Pattern[bytes], body: bytes, position: int) -> re.Match[bytes]:
    match = pattern.match(body, position)
    if match is None:
        raise ValueError(f"not a JSON object (byte {position})")
    return match
