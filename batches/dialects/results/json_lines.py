"""JSON as one line of JSON Lines, token for token the same value."""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHUNK_BYTES = 1 << 18

_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")
# Control characters, which valid JSON never holds, stand in for what would be escaped a second time.
_QUOTE_PLACEHOLDER, _BACKSLASH_PLACEHOLDER = "\x01", "\x02"
_PLACEHOLDERS = bytes.maketrans(b'"\\\t\r\n', f"{_QUOTE_PLACEHOLDER}{_BACKSLASH_PLACEHOLDER}   ".encode())


def to_single_line(text: bytes) -> Iterator[bytes]:
    """Its pieces. Line breaks stand only between the tokens of valid JSON, other bytes than ASCII only inside strings.

    So breaks become blanks and characters become escapes, and neither numbers nor key order are touched. Escaped,
    because clients split lines at U+2028 and U+0085 too; a piece at a time, as that may make three bytes of one.
    """
    if text.isascii():
        return (piece.translate(_LINE_BREAKS) for piece in split_chunks(text))
    return _escape_non_ascii(text)


def split_chunks(text: bytes) -> Iterator[bytes]:
    return (text[start : start + CHUNK_BYTES] for start in range(0, len(text), CHUNK_BYTES))


def coalesce_chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer parts: small ones together."""
    pending: list[bytes] = []
    size = 0
    for part in parts:
        pending.append(part)
        size += len(part)
        if size >= CHUNK_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    if pending:
        yield b"".join(pending)


def _escape_non_ascii(text: bytes) -> Iterator[bytes]:
    """By the interpreter's own loops alone: an answer may change between ASCII and the rest at every character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in split_chunks(text):
        yield _to_ascii(decoder.decode(chunk.translate(_PLACEHOLDERS)))
    yield _to_ascii(decoder.decode(b"", final=True))


def _to_ascii(text: str) -> bytes:
    escaped = json.dumps(text)[1:-1]
    return escaped.replace(r"\u0001", '"').replace(r"\u0002", "\\").encode("ascii")
