"""An upstream that refuses a host key may quote it, whole or in part: what it says is kept without that.

OpenAI's 401 has it as `sk-ab12********wxyz`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK = b"***"
# Servers without authentication are given a word as their key, which any message may hold.
SHORTEST_SECRET = 8
TELLING_CHARACTERS = 6

_WORD = re.compile(rb"[^\s\"'`\\<>(){}\[\],;:=]*[^\s\"'`\\<>(){}\[\],;:=.!?]")
# What JSON may write in two ways. A pair of backslashes is taken whole: what follows it is no escape.
_ESCAPED = re.compile(rb"\\\\|\\/|\\u00([2-7][0-9A-Fa-f])")
# A header's value is often more than its credential: `Basic …`, `session=…; theme=…`.
_PARTS = re.compile(r"[\s;,=]+")


def without_secrets(text: bytes, values: Iterable[str]) -> bytes:
    """`without_secret` of each part of each value that could be a secret by itself, and of the whole.

    Of JSON as well, in whatever way it is escaped; where something is masked, the rest is escaped in one way.
    """
    plain = _ESCAPED.sub(_unescaped, text)
    masked = plain
    for value in values:
        if len(value) >= SHORTEST_SECRET:
            masked = _without_spellings(masked, value)
        # The beginning of several words is a word that any message may hold.
        wholes = [] if " " in value else [value]
        for part in dict.fromkeys(wholes + _PARTS.split(value)):
            masked = without_secret(masked, part)
    return text if masked == plain else masked


def without_secret(text: bytes, secret: str) -> bytes:
    """`***` for the secret, for each word that begins as it does, and for words of asterisks between its two ends."""
    if len(secret) < SHORTEST_SECRET:
        return text
    value = secret.encode()
    return _WORD.sub(
        lambda word: MASK if _quotes(word[0], value) else word[0], _without_spellings(text, secret)
    )


def _without_spellings(text: bytes, secret: str) -> bytes:
    for spelled in (secret, json.dumps(secret)[1:-1], quote(secret, safe="")):
        text = text.replace(spelled.encode(), MASK)
    return text


def _unescaped(escape: re.Match[bytes]) -> bytes:
    if escape[1] is None:
        return b"/" if escape[0] == rb"\/" else escape[0]
    character = bytes([int(escape[1], 16)])
    return b"\\" + character if character in b'"\\' else character


def _quotes(word: bytes, secret: bytes) -> bool:
    if word.startswith(secret[:TELLING_CHARACTERS]):
        return True
    head, stars, rest = word.partition(b"**")
    tail = rest.lstrip(b"*")
    return bool(stars and (head or tail)) and secret.startswith(head) and secret.endswith(tail)
