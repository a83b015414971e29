"""What an upstream says that a call cost, in US dollars: exact, from the digits as written."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

MOST_NANOS = 2**63 - 1
"""What a bigint holds."""
TICKS_A_NANO = 10
_NANO = Decimal("1e-9")
_WHOLE_NANOS = Context(prec=30, rounding=ROUND_FLOOR)
_MOST_DOLLARS = 10**10


def upstream_cost_nanos(usage: Any) -> int | None:
    """Nano-dollars, cut after the ninth decimal; None where nothing is said, or nothing that can be an amount.

    `usage` is decoded with its fractions as Decimal. OpenRouter: `cost`
    (https://openrouter.ai/docs/use-cases/usage-accounting). Perplexity: `cost.total_cost`
    (https://docs.perplexity.ai/guides/pricing). xAI: `cost_in_usd_ticks`, 10^10 to the dollar
    (https://docs.x.ai/developers/cost-tracking).
    """
    if not isinstance(usage, dict):
        return None
    cost = usage.get("cost")
    nanos = _nanos(cost.get("total_cost") if isinstance(cost, dict) else cost)
    return _from_ticks(usage.get("cost_in_usd_ticks")) if nanos is None else nanos


def _nanos(dollars: Any) -> int | None:
    if (
        isinstance(dollars, bool)
        or not isinstance(dollars, int | Decimal)
        or not 0 <= dollars < _MOST_DOLLARS
    ):
        return None
    return _storable(int(Decimal(dollars).quantize(_NANO, context=_WHOLE_NANOS).scaleb(9, _WHOLE_NANOS)))


def _from_ticks(ticks: Any) -> int | None:
    if isinstance(ticks, bool) or not isinstance(ticks, int) or ticks < 0:
        return None
    return _storable(ticks // TICKS_A_NANO)


def _storable(nanos: int) -> int | None:
    return nanos if nanos <= MOST_NANOS else None
