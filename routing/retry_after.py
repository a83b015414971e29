"""The Retry-After header (RFC 9110, 10.2.3), as upstreams really write it."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

MAX_SECONDS = 900.0

_NUMBER = re.compile(r"\d+(\.\d*)?([eE]\+?\d+)?", re.ASCII)


def retry_after_seconds(value: str | None, *, now: datetime) -> float | None:
    """Seconds from 0 to 900. None without the header; 0 for what is past, negative or unreadable."""
    if value is None:
        return None
    text = value.strip()
    seconds = float(text) if _NUMBER.fullmatch(text) else _until(text, now)
    return min(max(seconds, 0.0), MAX_SECONDS)


def _until(text: str, now: datetime) -> float:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    # RFC 9110 knows GMT only; a date without a zone is meant so.
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds()
