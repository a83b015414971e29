"""The Retry-After header, as upstreams really write it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from routing.retry_after import retry_after_seconds

NOW = datetime(2026, 11, 6, 8, 49, 37, tzinfo=UTC)


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
    assert retry_after_seconds(value, now=NOW) == seconds
