from __future__ import annotations

import pytest

from routing.money import format_amount


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "0.00"),
        (2_500_000_000, "2.50"),
        (1, "0.000000001"),
        (1_234_567_000, "1.234567"),
        (-30_000_000, "-0.03"),
        (2**63 - 1, "9223372036.854775807"),
    ],
)
def test_an_amount_is_exact_and_has_two_decimals_at_least(nanos: int, text: str) -> None:
    assert format_amount(nanos) == text
