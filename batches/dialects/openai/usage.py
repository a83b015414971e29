"""The `usage` of OpenAI's batch object.

https://platform.openai.com/docs/api-reference/batch/object
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from usage.totals import Total


class InputTokensDetails(Struct, frozen=True, kw_only=True):
    cached_tokens: int


class OutputTokensDetails(Struct, frozen=True, kw_only=True):
    reasoning_tokens: int


class BatchUsage(Struct, frozen=True, kw_only=True):
    """`input_tokens` includes what was read from a cache or written to it."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


def batch_usage(total: Total) -> BatchUsage:
    """Our meters never overlap; OpenAI's input includes what came from the cache."""
    tokens = total.tokens
    cache_read, output = tokens.get("cache_read", 0), tokens.get("output", 0)
    prompt = tokens.get("input", 0) + cache_read + tokens.get("cache_write", 0)
    return BatchUsage(
        input_tokens=prompt,
        input_tokens_details=InputTokensDetails(cached_tokens=cache_read),
        output_tokens=output,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=tokens.get("reasoning", 0)),
        total_tokens=prompt + output,
    )
