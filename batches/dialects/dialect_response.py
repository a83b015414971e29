"""What a dialect answers, before compression and without Django."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import json

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON_CONTENT_TYPE = "application/json"
JSON_LINES_CONTENT_TYPE = "application/x-jsonl"


@dataclass(frozen=True, slots=True)
class DialectResponse:
    """`body`: all of it, or an iterator of its parts."""

    body: bytes | Iterator[bytes] = field(repr=False)
    status: int = 200
    content_type: str = JSON_CONTENT_TYPE


def json_response(value: Any) -> DialectResponse:
    return DialectResponse(json.encode(value))
