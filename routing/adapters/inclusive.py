"""Usage whose prompt includes what the cache read and wrote: OpenAI's two forms, and what other vendors make of them.

docs/vendors/vendor-usage.md has each vendor's form with its page and what it comes to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from routing.adapters.shape import as_count, as_part, if_countable
from routing.upstream.call import Tokens

METERS = frozenset({"input", "cache_read", "cache_write", "output", "reasoning"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InclusiveCounts:
    """`cached`, `written`, `reasoning` and `total` as reported, however odd."""

    prompt: int
    completion: int
    cached: Any
    written: Any
    reasoning: Any
    total: Any


def inclusive_tokens(counts: InclusiveCounts) -> Tokens | None:
    """None where no bigint holds the sum."""
    read = as_part(counts.cached, of=counts.prompt)
    written = as_part(counts.written, of=counts.prompt - read)
    reasoning = as_count(counts.reasoning) or 0
    output = counts.completion + (reasoning if _is_reasoning_outside(counts, reasoning) else 0)
    return if_countable(
        Tokens(
            input=counts.prompt - read - written,
            cache_read=read,
            cache_write=written,
            output=output,
            reasoning=min(reasoning, output),
        )
    )


def _is_reasoning_outside(counts: InclusiveCounts, reasoning: int) -> bool:
    """xAI and Gemini leave reasoning out of the completion, others have it inside: the total alone tells them apart.

    https://docs.x.ai/developers/rate-limits, https://ai.google.dev/gemini-api/docs/openai
    """
    is_whole = isinstance(counts.total, int) and not isinstance(counts.total, bool)
    return is_whole and counts.total == counts.prompt + counts.completion + reasoning
