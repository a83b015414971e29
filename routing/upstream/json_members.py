"""The `model` of a JSON object in bytes, found and replaced without reading the object into values.

A caller's item goes upstream byte for byte; only the value of its `model` may be replaced. So the place of that value
is needed, not a parsed body: numbers, key order and escapes would not survive one.
"""

from __future__ import annotations

import itertools
import re
from array import array
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

Text: TypeAlias = bytes | bytearray | memoryview | Raw

# A key at any depth that is `model` for somebody, and all up to its value: each letter in either case, as it is or
# escaped. No letter beyond ASCII folds to one of these. The end of another key may look like one (`"a \"model":`).
_KEY = re.compile(
    rb'"(?:[mM]|\\u00[46][dD])(?:[oO]|\\u00[46][fF])(?:[dD]|\\u00[46]4)(?:[eE]|\\u00[46]5)'
    rb'(?:[lL]|\\u00[46][cC])"[ \t\r\n]*+:[ \t\r\n]*+'
)
# Possessive quantifiers: passed over without backtracking.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

_SPELLINGS = ["".join(letters) for letters in itertools.product(*zip("model", "MODEL", strict=True))]
_Keys = msgspec.defstruct("_Keys", [(name, Raw | UnsetType, UNSET) for name in _SPELLINGS])
_keys = msgspec.json.Decoder(_Keys)


def has_one_model(body: Text) -> bool:
    """Whether an object that has a top-level `model` has no second key that is one without regard to case.

    Escapes are read (`"\\u006dodel"` is one). Servers written in Go take the last of such keys, whatever its case.
    Validate the body first. No step is made for each bracket or member: millions are a caller's to send.
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
    """The body with the value of its top-level `model`, a string, replaced, and every other byte kept.

    Only for a body that has one: ValueError where none can be found.
    """
    value = _STRING.match(body, _start_of_model(body))
    if value is None:
        raise ValueError("no model member")
    view = memoryview(body)
    return b"".join((view[: value.start()], msgspec.json.encode(upstream_name), view[value.end() :]))


def _start_of_model(body: bytes) -> int:
    """Of its value. One key alone must be it: then neither the body's depth nor its length matters."""
    found = list(itertools.islice(_KEY.finditer(body), 2))
    if len(found) == 1:
        return found[0].end()
    text = bytearray(body)
    model = getattr(_keys.decode(text), "model", UNSET) if found else UNSET
    return _position_of(model, text) if isinstance(model, Raw) else len(body)


def _models(text: Text) -> list[Raw]:
    """The values of the top-level keys that are one in some case; of the same key the last."""
    found = _keys.decode(text)
    values = (getattr(found, name) for name in _SPELLINGS)
    return [value for value in values if isinstance(value, Raw)]


def _position_of(model: Raw, text: bytearray) -> int:
    """Where in the text it begins: it is a view of it, so what is written there shows. By halves. Spoils the text."""
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
