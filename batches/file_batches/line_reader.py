"""Read the lines of a file of any size with flat memory."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE_BYTES = 4 << 20
_BLANK = b" \t\r"
_BLANKS = re.compile(rb"[ \t\r\n]*")


class Line(NamedTuple):
    """`number`: counted from 1, blank lines too. `text`: without white space around it; None: longer than the limit."""

    number: int
    text: bytes | None


def iter_lines(read: Callable[[int, int], bytes], *, size_bytes: int, max_line_bytes: int) -> Iterator[Line]:
    """Yield the lines that are not blank. `read(offset, length)` returns exactly so many bytes of the file.

    Lines end at `\\n` alone: U+2028 and the like are part of a JSON string. A byte order mark is skipped.
    """
    number = 0
    unfinished = _UnfinishedLine(max_line_bytes)
    for piece in _pieces(read, size_bytes):
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            if unfinished.is_empty and (after := _after_blank_lines(piece, start)) > start:
                number += piece.count(b"\n", start, after)
                start = after
                continue
            number += 1
            text = unfinished.finish(piece[start:end])
            start = end + 1
            if number == 1 and text:
                text = text.removeprefix(codecs.BOM_UTF8).strip(_BLANK)
            if text is None or text:
                yield Line(number, text)
        unfinished.add(piece[start:])


class _UnfinishedLine:
    """The parts of a line so far, joined once; none of a line that is longer than the limit."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size_bytes = 0

    @property
    def is_empty(self) -> bool:
        return not self._size_bytes

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


def _after_blank_lines(piece: bytes, start: int) -> int:
    """Return where the first line begins that is not blank; `start` when the line there is not.

    Without a step in Python for each line: a file of nothing else has 200 million of them.
    """
    blanks = _BLANKS.match(piece, start)
    return piece.rfind(b"\n", start, blanks.end() if blanks else start) + 1 or start


def _pieces(read: Callable[[int, int], bytes], size_bytes: int) -> Iterator[bytes]:
    """Yield the file piece by piece, and a line's end after the last one."""
    for offset in range(0, size_bytes, PIECE_BYTES):
        yield read(offset, min(PIECE_BYTES, size_bytes - offset))
    yield b"\n"
