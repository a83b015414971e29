"""Responses: https://platform.openai.com/docs/api-reference/responses/create"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.adapters.adapter import Adapter, as_count, as_mapping, join_path, no_headers, rename_model
from routing.adapters.cache_inclusive_usage import METERS, InclusiveCounts, inclusive_tokens

if TYPE_CHECKING:
    from routing.calls.call import Tokens


def usage(reported: Any) -> Tokens | None:
    """`input_tokens` includes what the cache read and wrote, `output_tokens` the reasoning."""
    counts = as_mapping(reported)
    prompt, completion = as_count(counts.get("input_tokens")), as_count(counts.get("output_tokens"))
    if prompt is None or completion is None:
        return None
    details = as_mapping(counts.get("input_tokens_details"))
    return inclusive_tokens(
        InclusiveCounts(
            prompt=prompt,
            completion=completion,
            cached=details.get("cached_tokens"),
            written=details.get("cache_write_tokens"),
            reasoning=as_mapping(counts.get("output_tokens_details")).get("reasoning_tokens"),
            total=counts.get("total_tokens"),
        )
    )


ADAPTER = Adapter(
    name="openai_responses",
    path=join_path("/v1/responses"),
    headers=no_headers,
    body=rename_model,
    usage=usage,
    meters=METERS,
    answer_fields=frozenset({"output"}),
)
