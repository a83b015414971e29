"""Durations as people write them: `90s`, `30m`, `12h`, `30d`, `2w`."""

from __future__ import annotations

import re
from datetime import timedelta

DURATION_FORMAT = "a whole number and a unit, one of s, m, h, d, w, as 30d or 12h, from 1s to 3660d"
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MAX_SECONDS = 3_660 * 86_400


def parse_duration(text: str) -> timedelta:
    """Parse a duration from 1s to 3660d. Raises ValueError with the form expected."""
    match = re.fullmatch(r"([0-9]{1,12})([smhdw])", text)
    if match is None:
        raise ValueError(f"expected {DURATION_FORMAT}")
    seconds = int(match[1]) * _SECONDS[match[2]]
    if not 0 < seconds <= _MAX_SECONDS:
        raise ValueError(f"expected {DURATION_FORMAT}")
    return timedelta(seconds=seconds)
