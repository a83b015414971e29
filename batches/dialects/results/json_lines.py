"""Write JSON as one line of JSON Lines: token for token the same value."""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHUNK_BYTES = 1 << 18

_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")
# Placeholders for what must not be escaped a second time: control characters, which valid JSON never holds.
_QUOTE_PLACEHOLDER, _BACKSLASH_PLACEHOLDER = "\x01", "\x02"
_PLACEHOLDERS = bytes.maketrans(b'"\\\t\r\n', f"{_QUOTE_PLACEHOLDER}{_BACKSLASH_PLACEHOLDER}   ".encode())


def to_single_line(text: bytes) -> Iterable[bytes]:
    """Yield the JSON text in chunks, without line breaks and in ASCII. Numbers and the order of keys stay as they are.

    In valid JSON, line breaks stand only between tokens, where a blank does as well, and other characters than ASCII
    only inside strings, where they can be escaped.
    """
    # Escaped, because clients split lines at U+2028 and U+0085 too. In chunks, because it may triple the size.
    if text.isascii():
        return (piece.translate(_LINE_BREAKS) for piece in split_chunks(text))
    return _escape_non_ascii(text)


def split_chunks(text: bytes) -> Iterable[bytes]:
    if len(text) <= CHUNK_BYTES:
        return (text,)
    return (text[start : start + CHUNK_BYTES] for start in range(0, len(text), CHUNK_BYTES))


def coalesce_chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join small parts into larger ones; the bytes stay the same."""
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
    """Escape every character beyond ASCII."""
    # No loop of Python over the characters, since they may change between ASCII and others at every one.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in split_chunks(text):
        yield _to_ascii(decoder.decode(chunk.translate(_PLACEHOLDERS)))
    yield _to_ascii(decoder.decode(b"", final=True))


def _to_ascii(text: str) -> bytes:
    escaped = json.dumps(text)[1:-1]
    return escaped.replace(r"\u0001", '"').replace(r"\u0002", "\\").encode("ascii")
