"""Chat Completions: https://platform.openai.com/docs/api-reference/chat/create"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from routing.adapters.adapter import Adapter, as_count, as_mapping, join_path, no_headers, rename_model
from routing.adapters.cache_inclusive_usage import METERS, InclusiveCounts, inclusive_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.calls.call import Tokens


def usage(reported: Any) -> Tokens | None:
    """`prompt_tokens` includes what the cache read and wrote, mostly `completion_tokens` the reasoning."""
    counts = as_mapping(reported)
    prompt, completion = as_count(counts.get("prompt_tokens")), as_count(counts.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    return inclusive_tokens(
        InclusiveCounts(
            prompt=prompt + _billed_separately(counts, "citation_tokens"),
            completion=completion + _billed_separately(counts, "reasoning_tokens"),
            cached=_cached_tokens(counts),
            written=as_mapping(counts.get("prompt_tokens_details")).get("cache_write_tokens"),
            reasoning=_reasoning_tokens(counts),
            total=counts.get("total_tokens"),
        )
    )


def _cached_tokens(counts: Mapping[str, Any]) -> int | None:
    """The first count among the vendors' names for it: OpenAI's and most others', Mistral's, DeepSeek's, Together's
    and Moonshot's, Mistral's other one.
    """
    reported = (
        as_mapping(counts.get("prompt_tokens_details")).get("cached_tokens"),
        as_mapping(counts.get("prompt_token_details")).get("cached_tokens"),
        counts.get("prompt_cache_hit_tokens"),
        counts.get("cached_tokens"),
        counts.get("num_cached_tokens"),
    )
    return next((number for number in map(as_count, reported) if number is not None), None)


def _reasoning_tokens(counts: Mapping[str, Any]) -> Any:
    """Others report it among the completion's details, Perplexity beside the counts."""
    details = as_mapping(counts.get("completion_tokens_details"))
    return details.get("reasoning_tokens", counts.get("reasoning_tokens"))


def _billed_separately(counts: Mapping[str, Any], name: str) -> int:
    """Tokens that Perplexity includes in no other count, which have an amount of their own in `cost`: a deep research's
    citations, billed as input, and its reasoning. https://docs.perplexity.ai/guides/pricing
    """
    cost = as_mapping(counts.get("cost")).get(f"{name}_cost")
    is_amount = isinstance(cost, int | float | Decimal) and not isinstance(cost, bool) and cost > 0
    return as_count(counts.get(name)) or 0 if is_amount else 0


ADAPTER = Adapter(
    name="openai",
    path=join_path("/v1/chat/completions"),
    headers=no_headers,
    body=rename_model,
    usage=usage,
    meters=METERS,
    answer_fields=frozenset({"choices"}),
)
