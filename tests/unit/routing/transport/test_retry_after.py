"""The Retry-After header, as upstreams really write it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from routing.transport.retry_after import retry_after_seconds

DATE = "Fri, 06 Nov 2026 08:49:37 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0),
        ("5", 5),
        (" 5 ", 5),
        ("1.5", 1.5),
        ("900", 900),
        ("901", 900),
        ("1e9", 900),
        ("9" * 400, 900),
        ("-1", 0),
        ("inf", 0),
        ("Infinity", 0),
        ("nan", 0),
        ("1_000", 0),
        ("\u0665", 0),
        ("", 0),
        ("soon", 0),
        ("Fri, 06 Nov 2026 08:50:07 GMT", 30),
        ("Fri, 06 Nov 2026 08:50:07", 30),
        ("Fri, 06 Nov 2026 09:50:07 +0100", 30),
        ("Fri, 06 Nov 2026 08:49:07 GMT", 0),
        ("Fri, 06 Nov 2099 08:49:07 GMT", 900),
        ("Fri, 99 Nov 2026 08:49:07 GMT", 0),
        ("Fri, 06 Nov 99999999999 08:49:07 GMT", 0),
    ],
)
def test_seconds_and_dates_are_read_within_bounds(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, date=DATE) == seconds


@pytest.mark.parametrize("date", [None, "", "yesterday"])
def test_without_a_readable_date_of_the_answer_our_own_clock_has_to_do(date: str | None) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=300), usegmt=True)
    seconds = retry_after_seconds(soon, date=date)
    assert seconds is not None
    assert 200 < seconds <= 300
