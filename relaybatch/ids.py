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
    if count > 1 << _RUN_BITS:
        raise ValueError(f"at most {1 << _RUN_BITS} ids in a run")
    first = _timestamp_bits() | secrets.randbits(62 - _RUN_BITS) << _RUN_BITS
    return (uuid.UUID(int=first + number) for number in range(count))


def _timestamp_bits() -> int:
    """Milliseconds (48 bits), version (7), 12 random bits and variant (0b10), at their positions in the id."""
    return (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62
