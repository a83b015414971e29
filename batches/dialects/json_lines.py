"""JSON as one line of JSON Lines, token for token the same value."""

from __future__ import annotations

import json
import re

_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")


def one_line(text: bytes) -> bytes:
    """Line breaks stand only between the tokens of valid JSON, other bytes than ASCII only inside its strings.

    So breaks become blanks and characters become escapes, and neither numbers nor key order are touched. Escaped,
    because clients split lines at U+2028 and U+0085 too.
    """
    flat = text.translate(_LINE_BREAKS)
    return flat if flat.isascii() else _BEYOND_ASCII.sub(_escaped, flat)


def _escaped(run: re.Match[bytes]) -> bytes:
    return json.dumps(run[0].decode(errors="replace"))[1:-1].encode("ascii")
