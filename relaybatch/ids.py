"""UUIDv7 (RFC 9562, 5.7): ids that sort by creation time."""

from __future__ import annotations

import secrets
import time
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUN_BITS = 20


def uuid7() -> uuid.UUID:
    return uuid.UUID(int=_timestamp_bits() | secrets.randbits(62))


def uuid7_run(count: int) -> Iterator[uuid.UUID]:
    """Yield `count` ascending ids with the same millisecond: 42 random bits, and a counter in the last 20.

    One random number for a whole submission: 50,000 of them cost more than storing the rows.
    """
    return (uuid.UUID(int=number) for number in _run(count))


def uuid7_run_hex(count: int) -> Iterator[str]:
    """As `uuid7_run`, but each id as its 32 hexadecimal digits, which takes a third of the time."""
    return (f"{number:032x}" for number in _run(count))


def _run(count: int) -> range:
    if count > 1 << _RUN_BITS:
        raise ValueError(f"at most {1 << _RUN_BITS} ids in a run")
    first = _timestamp_bits() | secrets.randbits(62 - _RUN_BITS) << _RUN_BITS
    return range(first, first + count)


def _timestamp_bits() -> int:
    """Milliseconds (48 bits), version (7), 12 random bits and variant (0b10), at their positions in the id."""
    return (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62
