"""Amounts of money as people write them."""

from __future__ import annotations

NANOS_PER_UNIT = 1_000_000_000


def format_amount(nanos: int) -> str:
    """Exactly, in plain digits and with two decimals at least: 2,500,000,000 nano-units are `2.50`."""
    whole, part = divmod(abs(nanos), NANOS_PER_UNIT)
    decimals = f"{part:09d}".rstrip("0").ljust(2, "0")
    return f"{'-' if nanos < 0 else ''}{whole}.{decimals}"
