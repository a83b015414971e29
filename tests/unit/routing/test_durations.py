from __future__ import annotations

from datetime import timedelta

import pytest

from routing.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("30d", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_span_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize(
    "text", ["", "30", "d", "30 d", "-1d", "1.5h", "30D", "0s", "1y", "٣d", "9999999999w", "1d\n"]
)
def test_anything_else_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number and a unit"):
        parse_duration(text)
