"""Times on the wire: RFC 3339 in UTC with milliseconds and `Z`, and OpenAI's seconds since 1970."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Annotated, TypeAlias

from msgspec import Meta

if TYPE_CHECKING:
    from datetime import datetime

Timestamp: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
EpochSeconds: TypeAlias = Annotated[int, Meta(description="Seconds since 1970.")]


def format_time(at: datetime) -> str:
    """`2026-10-21T09:14:03.512Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_optional_time(at: datetime | None) -> str | None:
    return format_time(at) if at else None


def epoch_seconds(at: datetime) -> int:
    return int(at.timestamp())


def optional_epoch_seconds(at: datetime | None) -> int | None:
    return epoch_seconds(at) if at else None
