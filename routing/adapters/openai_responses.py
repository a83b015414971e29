"""Responses: https://platform.openai.com/docs/api-reference/responses/create"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.adapters.inclusive import METERS, InclusiveCounts, inclusive_tokens
from routing.adapters.shape import Adapter, count, mapping, none_of_its_own, renamed, under

if TYPE_CHECKING:
    from routing.upstream.call import Tokens


def usage(reported: Any) -> Tokens | None:
    """`input_tokens` includes what the cache read and wrote, `output_tokens` the reasoning."""
    counts = mapping(reported)
    prompt, completion = count(counts.get("input_tokens")), count(counts.get("output_tokens"))
    if prompt is None or completion is None:
        return None
    details = mapping(counts.get("input_tokens_details"))
    return inclusive_tokens(
        InclusiveCounts(
            prompt=prompt,
            completion=completion,
            cached=details.get("cached_tokens"),
            written=details.get("cache_write_tokens"),
            reasoning=mapping(counts.get("output_tokens_details")).get("reasoning_tokens"),
            total=counts.get("total_tokens"),
        )
    )


ADAPTER = Adapter(
    name="openai_responses",
    path=under("/v1/responses"),
    headers=none_of_its_own,
    body=renamed,
    usage=usage,
    meters=METERS,
    answer_fields=frozenset({"output"}),
)
