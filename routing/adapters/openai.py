"""Chat Completions: https://platform.openai.com/docs/api-reference/chat/create"""

from __future__ import annotations

from typing import Any

from routing.adapters.shape import Adapter, count, mapping, none_of_its_own, part, renamed, under
from routing.call import Tokens


def usage(reported: Any) -> Tokens | None:
    """`prompt_tokens` includes the cached ones, `completion_tokens` the reasoning."""
    counts = mapping(reported)
    prompt, completion = count(counts.get("prompt_tokens")), count(counts.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    cached = part(mapping(counts.get("prompt_tokens_details")).get("cached_tokens"), of=prompt)
    reasoning = mapping(counts.get("completion_tokens_details")).get("reasoning_tokens")
    return Tokens(
        input=prompt - cached,
        cache_read=cached,
        output=completion,
        reasoning=part(reasoning, of=completion),
    )


ADAPTER = Adapter(
    name="openai",
    path=under("/v1/chat/completions"),
    headers=none_of_its_own,
    body=renamed,
    usage=usage,
    answer_fields=frozenset({"choices"}),
)
