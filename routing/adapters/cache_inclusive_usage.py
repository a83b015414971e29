"""Usage whose prompt count includes cache reads and writes: OpenAI's two forms, and other vendors' variants.

docs/vendors/vendor-usage.md shows each vendor's form, with its page and the bill that it leads to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from routing.adapters.adapter import as_count, as_part, if_countable
from routing.calls.call import Tokens

METERS = frozenset({"input", "cache_read", "cache_write", "output", "reasoning"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InclusiveCounts:
    """`cached`, `written`, `reasoning` and `total` are as reported, whatever they are."""

    prompt: int
    completion: int
    cached: Any
    written: Any
    reasoning: Any
    total: Any


def inclusive_tokens(counts: InclusiveCounts) -> Tokens | None:
    """The counts as meters that do not overlap; None when their sum is larger than a bigint."""
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
    """xAI and Gemini exclude reasoning from the completion, others include it: only the total tells which.

    https://docs.x.ai/developers/rate-limits, https://ai.google.dev/gemini-api/docs/openai
    """
    is_whole = isinstance(counts.total, int) and not isinstance(counts.total, bool)
    return is_whole and counts.total == counts.prompt + counts.completion + reasoning
