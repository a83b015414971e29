"""The `Range` of a request for one representation: a single range of bytes, or all of it.

https://www.rfc-editor.org/rfc/rfc9110#name-range-requests
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Far more digits than any size has; longer numbers count as malformed.
_RANGE = re.compile(
    r"\s*bytes\s*=\s*(?P<first>[0-9]{0,40})\s*-\s*(?P<last>[0-9]{0,40})\s*", re.IGNORECASE | re.ASCII
)


class UnsatisfiableRange(Exception):  # noqa: N818 -- named for what the caller reads
    """The range begins behind the last byte."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`length` bytes from `offset`, at least one."""

    offset: int
    length: int

    def content_range(self, size_bytes: int) -> str:
        return f"bytes {self.offset}-{self.offset + self.length - 1}/{size_bytes}"


def parse_range(header: str, *, size_bytes: int) -> ByteRange | None:
    """Return the range, cut to the size. None, for all of it: no range, several, or a malformed header."""
    found = _RANGE.fullmatch(header)
    if not found or not (found["first"] or found["last"]):
        return None
    if not found["first"]:
        return _suffix(int(found["last"]), size_bytes=size_bytes)
    first, last = int(found["first"]), int(found["last"] or size_bytes)
    if last < first and found["last"]:
        return None
    if first >= size_bytes:
        raise UnsatisfiableRange
    return ByteRange(first, min(last, size_bytes - 1) - first + 1)


def _suffix(length: int, *, size_bytes: int) -> ByteRange:
    length = min(length, size_bytes)
    if not length:
        raise UnsatisfiableRange
    return ByteRange(size_bytes - length, length)
