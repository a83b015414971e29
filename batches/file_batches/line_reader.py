"""Read the lines of a file of any size with flat memory."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE_BYTES = 4 << 20
_BLANK = b" \t\r"


class Line(NamedTuple):
    """`number`: counted from 1, blank lines too. `text`: without white space around it; None: longer than the limit."""

    number: int
    text: bytes | None


def iter_lines(read: Callable[[int, int], bytes], *, size_bytes: int, max_line_bytes: int) -> Iterator[Line]:
    """Yield the lines that are not blank. `read(offset, length)` returns exactly so many bytes of the file.

    Lines end at `\\n` alone: U+2028 and the like are part of a JSON string. A byte order mark is skipped.
    """
    number, rest, is_skipping = 0, b"", False
    for piece in _pieces(read, size_bytes):
        *lines, last = piece.split(b"\n")
        for line in lines:
            number += 1
            text = None if is_skipping else (rest + line).strip(_BLANK)
            if number == 1 and text:
                text = text.removeprefix(codecs.BOM_UTF8).strip(_BLANK)
            rest, is_skipping = b"", False
            if text is None or text:
                yield Line(number, text if text is None or len(text) <= max_line_bytes else None)
        rest = b"" if is_skipping else rest + last
        if len(rest) > max_line_bytes + PIECE_BYTES:
            rest, is_skipping = b"", True


def _pieces(read: Callable[[int, int], bytes], size_bytes: int) -> Iterator[bytes]:
    """Yield the file piece by piece, and a line's end after the last one."""
    for offset in range(0, size_bytes, PIECE_BYTES):
        yield read(offset, min(PIECE_BYTES, size_bytes - offset))
    yield b"\n"
