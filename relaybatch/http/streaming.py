"""Streamed bodies: begun before the status is sent, and compressed for clients that accept gzip."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GZIP = re.compile(r"(?:^|,)\s*(?:x-)?gzip\s*(?:;\s*q\s*=\s*(?P<weight>[0-9.]+)\s*)?(?=,|$)", re.IGNORECASE)
_COMPRESSION_LEVEL = 3


def accepts_gzip(accept_encoding: str) -> bool:
    found = _GZIP.search(accept_encoding)
    return found is not None and (found["weight"] or "1").strip("0.") != ""


def start_stream(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Make the first part now, while an error in it can still become an error status."""
    first = next(parts, b"")
    return _prepend(first, parts)


def compress(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Compress part by part, flushing after each, so that the first one is sent at once."""
    compressor = zlib.compressobj(level=_COMPRESSION_LEVEL, wbits=31)
    for part in parts:
        yield compressor.compress(part) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()


def _prepend(first: bytes, parts: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from parts
