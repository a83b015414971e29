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
    number, is_first = 0, True
    unfinished = _UnfinishedLine(max_line_bytes)
    for piece in _pieces(read, size_bytes):
        *ends, rest = piece.split(b"\n")
        for end in ends:
            number += 1
            text = unfinished.finish(end)
            if is_first and text:
                text = text.removeprefix(codecs.BOM_UTF8).strip(_BLANK)
            is_first = False
            if text is None or text:
                yield Line(number, text)
        unfinished.add(rest)


class _UnfinishedLine:
    """The pieces of a line so far, joined once; none of a line that is longer than the limit."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size_bytes = 0

    def add(self, part: bytes) -> None:
        self._size_bytes += len(part)
        self._parts.append(part)
        if self._size_bytes > self._max_bytes + PIECE_BYTES:
            self._parts.clear()

    def finish(self, end: bytes) -> bytes | None:
        """Return the line without white space around it, None if it is too long; and begin the next one."""
        self.add(end)
        text = b"".join(self._parts).strip(_BLANK)
        is_whole = bool(self._parts)
        self._parts, self._size_bytes = [], 0
        return text if is_whole and len(text) <= self._max_bytes else None


def _pieces(read: Callable[[int, int], bytes], size_bytes: int) -> Iterator[bytes]:
    """Yield the file piece by piece, and a line's end after the last one."""
    for offset in range(0, size_bytes, PIECE_BYTES):
        yield read(offset, min(PIECE_BYTES, size_bytes - offset))
    yield b"\n"
