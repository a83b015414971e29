"""Price tokens in whole nano-units of the price list's currency: integers only, rounded down for each meter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.meters import WHOLE_OF_PART, WHOLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.calls.call import PriceList, Tokens

TOKENS_PER_RATE = 1_000_000
# The limit of the column. Only an absurd rate or count exceeds it, and must not keep the item from being settled.
MAX_COST_NANOS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Price:
    """`cost_nanos` None = unpriced, which is not 0; then `breakdown` is empty. Otherwise its sum is the cost."""

    cost_nanos: int | None
    breakdown: Mapping[str, int] = field(default_factory=dict)


UNPRICED = Price(cost_nanos=None)


def price(*, tokens: Tokens | None, prices: PriceList | None) -> Price:
    """Price the tokens. Unpriced when they are unknown, or when a meter has tokens and no rate."""
    if tokens is None:
        return UNPRICED
    rates = _rates(prices, prompt_tokens=tokens.input + tokens.cache_read + tokens.cache_write)
    counts = _priced_counts(tokens, rates)
    if any(meter not in rates for meter in counts):
        return UNPRICED
    breakdown = {meter: count * rates[meter] // TOKENS_PER_RATE for meter, count in counts.items()}
    cost = sum(breakdown.values())
    return Price(cost_nanos=cost, breakdown=breakdown) if cost <= MAX_COST_NANOS else UNPRICED


def _rates(prices: PriceList | None, *, prompt_tokens: int) -> dict[str, int]:
    """The rate of each meter: that of the highest tier whose threshold the prompt has reached."""
    tiers = prices.rates if prices else ()
    reached = [tier for tier in tiers if tier.above_tokens <= prompt_tokens]
    return {tier.meter: tier.rate_nanos for tier in sorted(reached, key=lambda tier: tier.above_tokens)}


def _priced_counts(tokens: Tokens, rates: Mapping[str, int]) -> dict[str, int]:
    """Counts above 0 by the meter that prices them: a part with a rate of its own is subtracted from its whole.

    When an upstream reports more of a part than of its whole, only the whole is charged.
    """
    counts = {meter: getattr(tokens, meter) for meter in WHOLES}
    for part, whole in WHOLE_OF_PART.items():
        if part in rates:
            counts[part] = min(getattr(tokens, part), counts[whole])
            counts[whole] -= counts[part]
    return {meter: count for meter, count in counts.items() if count > 0}
