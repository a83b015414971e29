"""The cost of a call that the upstream reports, in US dollars: exact, from the digits as written."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

MAX_NANOS = 2**63 - 1
"""The largest bigint."""
TICKS_PER_NANO = 10
_NANO = Decimal("1e-9")
_WHOLE_NANOS = Context(prec=30, rounding=ROUND_FLOOR)
_MAX_DOLLARS = 10**10


def upstream_cost_nanos(usage: Any) -> int | None:
    """The reported cost in nano-dollars, cut after the ninth decimal; None when there is none, or no valid amount.

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
    if isinstance(dollars, bool) or not isinstance(dollars, int | Decimal) or not 0 <= dollars < _MAX_DOLLARS:
        return None
    return _if_storable(int(Decimal(dollars).quantize(_NANO, context=_WHOLE_NANOS).scaleb(9, _WHOLE_NANOS)))


def _from_ticks(ticks: Any) -> int | None:
    if isinstance(ticks, bool) or not isinstance(ticks, int) or ticks < 0:
        return None
    return _if_storable(ticks // TICKS_PER_NANO)


def _if_storable(nanos: int) -> int | None:
    return nanos if nanos <= MAX_NANOS else None
