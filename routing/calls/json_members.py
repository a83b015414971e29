"""Find and replace the `model` of a JSON object in bytes, without parsing the object into values.

A caller's item is sent byte for byte; only the value of its `model` may be replaced. Parsing and writing the body anew
would change numbers, key order and escapes.
"""

from __future__ import annotations

import itertools
import re
from array import array
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

Text: TypeAlias = bytes | bytearray | memoryview | Raw

# A key at any depth that some parser takes for `model`, and everything up to its value: each letter in either case,
# plain or escaped. No letter beyond ASCII folds to one of these. The end of another key may look like one
# (`"a \"model":`).
_KEY = re.compile(
    rb'"(?:[mM]|\\u00[46][dD])(?:[oO]|\\u00[46][fF])(?:[dD]|\\u00[46]4)(?:[eE]|\\u00[46]5)'
    rb'(?:[lL]|\\u00[46][cC])"[ \t\r\n]*+:[ \t\r\n]*+'
)
# Possessive quantifiers, so that it never backtracks.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

_SPELLINGS = ["".join(letters) for letters in itertools.product(*zip("model", "MODEL", strict=True))]
_Keys = msgspec.defstruct("_Keys", [(name, Raw | UnsetType, UNSET) for name in _SPELLINGS])
_keys = msgspec.json.Decoder(_Keys)


def has_one_model(body: Text) -> bool:
    """Whether an object with a top-level `model` has no second such key, without regard to case.

    Escapes count (`"\\u006dodel"` is such a key). Servers written in Go take the last of such keys, whatever its case.
    Validate the body first. There is no Python step for each bracket or member, of which a caller may send millions.
    """
    found = _KEY.finditer(body)
    next(found, None)
    if next(found, None) is None:
        return True
    text = bytearray(body)
    models = _models(text)
    if len(models) != 1:
        return False
    key_end = text.rindex(b'"', 0, _position_of(models[0], text))
    memoryview(text)[:] = memoryview(body)
    text[key_end - 1] = ord("0")  # an l, or the end of its escape: the key is `mode0` or such
    return not _models(text)


def replace_model(body: bytes, upstream_name: str) -> bytes:
    """Replace the value of the body's top-level `model`, a string, and keep every other byte.

    Raises ValueError when no such member is found.
    """
    value = _STRING.match(body, _start_of_model(body))
    if value is None:
        raise ValueError("no model member")
    view = memoryview(body)
    return b"".join((view[: value.start()], msgspec.json.encode(upstream_name), view[value.end() :]))


def _start_of_model(body: bytes) -> int:
    """The offset of its value. If only one key matches, it must be that: then the body need not be parsed."""
    found = list(itertools.islice(_KEY.finditer(body), 2))
    if len(found) == 1:
        return found[0].end()
    text = bytearray(body)
    model = getattr(_keys.decode(text), "model", UNSET) if found else UNSET
    return _position_of(model, text) if isinstance(model, Raw) else len(body)


def _models(text: Text) -> list[Raw]:
    """The values of the top-level keys that are `model` in some case; of equal keys the last."""
    found = _keys.decode(text)
    values = (getattr(found, name) for name in _SPELLINGS)
    return [value for value in values if isinstance(value, Raw)]


def _position_of(model: Raw, text: bytearray) -> int:
    """The offset of the value in the text, by bisection. Overwrites the text.

    `model` is a view of the text, so a mark written at the right offset shows in it.
    """
    seen = memoryview(model)
    places = array("Q", (key.end() for key in _KEY.finditer(text)))
    mark = 0
    while len(places) > 1:
        mark += 1  # no value begins with a control character
        half = places[: len(places) // 2]
        for place in half:
            text[place] = mark
        places = half if seen[0] == mark else places[len(half) :]
    return places[0]
