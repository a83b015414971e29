"""Validate UTF-8 in chunks, without one string of the whole text."""

from __future__ import annotations

import codecs
from typing import TypeAlias

CHUNK_BYTES = 1 << 20

Text: TypeAlias = bytes | bytearray | memoryview


def invalid_utf8_at(text: Text) -> int | None:
    """Offset of the first byte that is not UTF-8, None if all are.

    In chunks, since one string of a text with emoji takes four times its size.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    view = memoryview(text)
    for start in range(0, len(view), CHUNK_BYTES):
        pending = len(decoder.getstate()[0])
        end = start + CHUNK_BYTES
        try:
            decoder.decode(view[start:end], final=end >= len(view))
        except UnicodeDecodeError as error:
            return start - pending + error.start
    return None
