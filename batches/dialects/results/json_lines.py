"""JSON as one line of JSON Lines, token for token the same value."""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STEP_BYTES = 1 << 18

_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")
# Control characters, which valid JSON never holds, stand in for what would be escaped a second time.
_QUOTE, _BACKSLASH = "\x01", "\x02"
_STANDING_IN = bytes.maketrans(b'"\\\t\r\n', f"{_QUOTE}{_BACKSLASH}   ".encode())


def one_line(text: bytes) -> Iterator[bytes]:
    """Its pieces. Line breaks stand only between the tokens of valid JSON, other bytes than ASCII only inside strings.

    So breaks become blanks and characters become escapes, and neither numbers nor key order are touched. Escaped,
    because clients split lines at U+2028 and U+0085 too; a piece at a time, as that may make three bytes of one.
    """
    if text.isascii():
        return (piece.translate(_LINE_BREAKS) for piece in pieces(text))
    return _escaped(text)


def pieces(text: bytes) -> Iterator[bytes]:
    return (text[start : start + STEP_BYTES] for start in range(0, len(text), STEP_BYTES))


def gathered(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer parts: small ones together."""
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= STEP_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _escaped(text: bytes) -> Iterator[bytes]:
    """By the interpreter's own loops alone: an answer may change between ASCII and the rest at every character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces(text):
        yield _ascii(decoder.decode(piece.translate(_STANDING_IN)))
    yield _ascii(decoder.decode(b"", final=True))


def _ascii(text: str) -> bytes:
    escaped = json.dumps(text)[1:-1]
    return escaped.replace(r"\u0001", '"').replace(r"\u0002", "\\").encode("ascii")
