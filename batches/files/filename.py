"""The name of an uploaded file: any is accepted, since clients send whatever they have."""

from __future__ import annotations

import re

DEFAULT_FILENAME = "upload"
MAX_FILENAME_CHARACTERS = 1024
# PostgreSQL takes neither NUL nor half a surrogate pair; a line break would end the header of the download.
_UNSTORABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def normalize_filename(given: str | None) -> str:
    """Return the last part of a path, without control characters, cut to MAX_FILENAME_CHARACTERS."""
    last = re.split(r"[/\\]", given or "")[-1]
    name = _UNSTORABLE.sub("_", last)[:MAX_FILENAME_CHARACTERS].strip()
    return DEFAULT_FILENAME if name in ("", ".", "..") else name
