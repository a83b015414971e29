"""Responses: https://platform.openai.com/docs/api-reference/responses/create"""

from __future__ import annotations

from typing import Any

from routing.adapters.shape import Adapter, count, mapping, none_of_its_own, part, renamed, under
from routing.call import Tokens


def usage(reported: Any) -> Tokens | None:
    """`input_tokens` includes the cached ones, `output_tokens` the reasoning."""
    counts = mapping(reported)
    prompt, completion = count(counts.get("input_tokens")), count(counts.get("output_tokens"))
    if prompt is None or completion is None:
        return None
    cached = part(mapping(counts.get("input_tokens_details")).get("cached_tokens"), of=prompt)
    reasoning = mapping(counts.get("output_tokens_details")).get("reasoning_tokens")
    return Tokens(
        input=prompt - cached,
        cache_read=cached,
        output=completion,
        reasoning=part(reasoning, of=completion),
    )


ADAPTER = Adapter(
    name="openai_responses",
    path=under("/v1/responses"),
    headers=none_of_its_own,
    body=renamed,
    usage=usage,
    answer_fields=frozenset({"output"}),
)
