"""Messages: https://docs.anthropic.com/en/api/messages"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.adapters.shape import (
    MAX_COUNT,
    Adapter,
    always_under,
    believable,
    count,
    mapping,
    part,
    renamed,
)
from routing.upstream.call import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "2023-06-01"
METERS = frozenset({"input", "cache_read", "cache_write", "output", "cache_write_5m", "cache_write_1h"})


def headers(*, passed_on: Mapping[str, str]) -> dict[str, str]:
    """The caller's own `anthropic-version` and `anthropic-beta` decide what the answer looks like."""
    return {"anthropic-version": VERSION, **passed_on}


def usage(reported: Any) -> Tokens | None:
    """`input_tokens` leaves out what was read from and written to the cache."""
    counts = mapping(reported)
    prompt, completion = count(counts.get("input_tokens")), count(counts.get("output_tokens"))
    if prompt is None or completion is None:
        return None
    parts = mapping(counts.get("cache_creation"))
    short = part(parts.get("ephemeral_5m_input_tokens"), of=MAX_COUNT)
    long = part(parts.get("ephemeral_1h_input_tokens"), of=MAX_COUNT)
    written = count(counts.get("cache_creation_input_tokens"))
    if written is None:
        written = min(short + long, MAX_COUNT)
    short = min(short, written)
    return believable(
        Tokens(
            input=prompt,
            output=completion,
            cache_read=part(counts.get("cache_read_input_tokens"), of=MAX_COUNT),
            cache_write=written,
            cache_write_5m=short,
            cache_write_1h=min(long, written - short),
        )
    )


ADAPTER = Adapter(
    name="anthropic",
    path=always_under("/v1/messages"),
    headers=headers,
    body=renamed,
    usage=usage,
    meters=METERS,
    answer_fields=frozenset({"content"}),
    auth="x-api-key",
)
