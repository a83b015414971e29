"""Chat Completions: https://platform.openai.com/docs/api-reference/chat/create"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from routing.adapters.inclusive import METERS, InclusiveCounts, inclusive_tokens
from routing.adapters.shape import Adapter, count, mapping, none_of_its_own, renamed, under

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.upstream.call import Tokens


def usage(reported: Any) -> Tokens | None:
    """`prompt_tokens` includes what the cache read and wrote, `completion_tokens` mostly the reasoning."""
    counts = mapping(reported)
    prompt, completion = count(counts.get("prompt_tokens")), count(counts.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    return inclusive_tokens(
        InclusiveCounts(
            prompt=prompt + _billed_apart(counts, "citation_tokens"),
            completion=completion + _billed_apart(counts, "reasoning_tokens"),
            cached=_cached(counts),
            written=mapping(counts.get("prompt_tokens_details")).get("cache_write_tokens"),
            reasoning=_reasoning(counts),
            total=counts.get("total_tokens"),
        )
    )


def _cached(counts: Mapping[str, Any]) -> int | None:
    """By the first of the vendors' names that has a count: OpenAI's and most others', Mistral's, DeepSeek's,
    Together's and Moonshot's, Mistral's other one.
    """
    reported = (
        mapping(counts.get("prompt_tokens_details")).get("cached_tokens"),
        mapping(counts.get("prompt_token_details")).get("cached_tokens"),
        counts.get("prompt_cache_hit_tokens"),
        counts.get("cached_tokens"),
        counts.get("num_cached_tokens"),
    )
    return next((number for number in map(count, reported) if number is not None), None)


def _reasoning(counts: Mapping[str, Any]) -> Any:
    """Perplexity has it beside the counts, others among the completion's details."""
    details = mapping(counts.get("completion_tokens_details"))
    return details.get("reasoning_tokens", counts.get("reasoning_tokens"))


def _billed_apart(counts: Mapping[str, Any], name: str) -> int:
    """What Perplexity has in no other count, known by an amount of its own in `cost`: a deep research's citations,
    billed as input, and its reasoning. https://docs.perplexity.ai/guides/pricing
    """
    cost = mapping(counts.get("cost")).get(f"{name}_cost")
    is_amount = isinstance(cost, int | float | Decimal) and not isinstance(cost, bool) and cost > 0
    return count(counts.get(name)) or 0 if is_amount else 0


ADAPTER = Adapter(
    name="openai",
    path=under("/v1/chat/completions"),
    headers=none_of_its_own,
    body=renamed,
    usage=usage,
    meters=METERS,
    answer_fields=frozenset({"choices"}),
)
