"""Amounts of money, stored in nano-units of the currency, as people write them."""

from __future__ import annotations

NANOS_PER_UNIT = 1_000_000_000


def format_amount(nanos: int) -> str:
    """Format the amount exactly, with at least two decimals: 2,500,000,000 nano-units are `2.50`."""
    whole, part = divmod(abs(nanos), NANOS_PER_UNIT)
    decimals = f"{part:09d}".rstrip("0").ljust(2, "0")
    return f"{'-' if nanos < 0 else ''}{whole}.{decimals}"
