"""Messages: https://docs.anthropic.com/en/api/messages"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.adapters.adapter import (
    MAX_COUNT,
    Adapter,
    as_count,
    as_mapping,
    as_part,
    if_countable,
    join_full_path,
    rename_model,
)
from routing.calls.call import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "2023-06-01"
METERS = frozenset({"input", "cache_read", "cache_write", "output", "cache_write_5m", "cache_write_1h"})


def headers(*, forwarded: Mapping[str, str]) -> dict[str, str]:
    """The caller's own `anthropic-version` and `anthropic-beta` take precedence: they decide the response's form."""
    return {"anthropic-version": VERSION, **forwarded}


def usage(reported: Any) -> Tokens | None:
    """`input_tokens` excludes what was read from and written to the cache."""
    counts = as_mapping(reported)
    prompt, completion = as_count(counts.get("input_tokens")), as_count(counts.get("output_tokens"))
    if prompt is None or completion is None:
        return None
    parts = as_mapping(counts.get("cache_creation"))
    short = as_part(parts.get("ephemeral_5m_input_tokens"), of=MAX_COUNT)
    long = as_part(parts.get("ephemeral_1h_input_tokens"), of=MAX_COUNT)
    written = as_count(counts.get("cache_creation_input_tokens"))
    if written is None:
        written = min(short + long, MAX_COUNT)
    short = min(short, written)
    return if_countable(
        Tokens(
            input=prompt,
            output=completion,
            cache_read=as_part(counts.get("cache_read_input_tokens"), of=MAX_COUNT),
            cache_write=written,
            cache_write_5m=short,
            cache_write_1h=min(long, written - short),
        )
    )


ADAPTER = Adapter(
    name="anthropic",
    path=join_full_path("/v1/messages"),
    headers=headers,
    body=rename_model,
    usage=usage,
    meters=METERS,
    answer_fields=frozenset({"content"}),
    auth="x-api-key",
)
