"""Parse the Retry-After header (RFC 9110, 10.2.3), as upstreams really write it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_SECONDS = 900.0

_NUMBER = re.compile(r"\d+(\.\d*)?([eE]\+?\d+)?", re.ASCII)


def retry_after_seconds(value: str | None, *, date: str | None) -> float | None:
    """Seconds from 0 to 900; None without the header, 0 for a time in the past, a negative or an unreadable one.

    `date`: the response's own Date header. A date in Retry-After is compared with it; if it cannot be read, with this
    machine's clock.
    """
    if value is None:
        return None
    text = value.strip()
    seconds = float(text) if _NUMBER.fullmatch(text) else _seconds_between(date, text)
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _seconds_between(date: str | None, text: str) -> float:
    until = _parse_date(text)
    return (until - (_parse_date(date or "") or datetime.now(UTC))).total_seconds() if until else 0.0


def _parse_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # RFC 9110 allows only GMT; a date without a zone is taken as GMT.
    return date if date.tzinfo else date.replace(tzinfo=UTC)
