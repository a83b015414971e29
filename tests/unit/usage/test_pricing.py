"""Prices: whole numbers, tiers by the prompt's size, parts of a meter, and what cannot be priced."""

from __future__ import annotations

import random

import pytest

from routing.calls.call import PriceList, PriceRate, Tokens
from usage.pricing import UNPRICED, Price, price

USD = 10**9  # nano-units


def price_list(*rates: tuple[str, int] | tuple[str, int, int]) -> PriceList:
    tiers = tuple(
        PriceRate(meter=r[0], rate_nanos=r[1], above_tokens=r[2] if len(r) > 2 else 0) for r in rates
    )
    return PriceList(name="p", version=1, currency="USD", rates=tiers)


PLAIN = price_list(("input", 2 * USD), ("cache_read", USD // 2), ("output", 8 * USD))
TIERED = price_list(("input", 2 * USD), ("input", 4 * USD, 200_000), ("output", 8 * USD))


def test_a_cached_prompt_costs_its_three_meters() -> None:
    tokens = Tokens(input=60, cache_read=40, output=50)
    assert price(tokens=tokens, prices=PLAIN) == Price(
        cost_nanos=540_000, breakdown={"input": 120_000, "cache_read": 20_000, "output": 400_000}
    )


@pytest.mark.parametrize(
    ("tokens", "cost"),
    [
        (Tokens(input=199_999, output=0), 199_999 * 2_000),
        (Tokens(input=200_000, output=0), 200_000 * 4_000),
        (Tokens(input=200_001, output=0), 200_001 * 4_000),
        (Tokens(input=199_999, output=10), 199_999 * 2_000 + 80_000),
    ],
)
def test_the_tier_that_the_prompt_has_reached_prices_the_whole_count(tokens: Tokens, cost: int) -> None:
    assert price(tokens=tokens, prices=TIERED).cost_nanos == cost


def test_tiers_look_at_the_whole_prompt_cached_parts_included() -> None:
    prices = price_list(
        ("input", 2 * USD),
        ("input", 4 * USD, 100),
        ("cache_read", USD),
        ("cache_write", 3 * USD),
        ("output", 8 * USD),
        ("output", 9 * USD, 100),
    )
    below = price(tokens=Tokens(input=10, cache_read=40, cache_write=49, output=1), prices=prices)
    at = price(tokens=Tokens(input=10, cache_read=40, cache_write=50, output=1), prices=prices)
    assert below.breakdown == {
        "input": 20_000,
        "cache_read": 40_000,
        "cache_write": 147_000,
        "output": 8_000,
    }
    assert at.breakdown == {"input": 40_000, "cache_read": 40_000, "cache_write": 150_000, "output": 9_000}


def test_tiers_may_be_listed_in_any_order() -> None:
    prices = price_list(("input", 5 * USD, 1_000), ("input", 1 * USD), ("input", 3 * USD, 100))
    costs = [price(tokens=Tokens(input=n, output=0), prices=prices).cost_nanos for n in (99, 100, 999, 1_000)]
    assert costs == [99_000, 300_000, 2_997_000, 5_000_000]


@pytest.mark.parametrize(
    ("tokens", "rates", "breakdown"),
    [
        pytest.param(
            Tokens(input=0, output=50, reasoning=30),
            [("output", 8 * USD)],
            {"output": 400_000},
            id="without a rate a part is part of its whole",
        ),
        pytest.param(
            Tokens(input=0, output=50, reasoning=30),
            [("output", 8 * USD), ("reasoning", 2 * USD)],
            {"output": 160_000, "reasoning": 60_000},
            id="with one it is taken off the whole",
        ),
        pytest.param(
            Tokens(input=0, output=50, reasoning=50),
            [("reasoning", 2 * USD)],
            {"reasoning": 100_000},
            id="nothing is left that would need the whole's rate",
        ),
        pytest.param(
            Tokens(input=0, output=50, reasoning=70),
            [("output", 8 * USD), ("reasoning", 2 * USD)],
            {"reasoning": 100_000},
            id="never more than the whole",
        ),
        pytest.param(
            Tokens(input=0, output=0, cache_write=100, cache_write_5m=60, cache_write_1h=40),
            [("cache_write_5m", 3 * USD), ("cache_write_1h", 6 * USD)],
            {"cache_write_5m": 180_000, "cache_write_1h": 240_000},
            id="two parts of one whole",
        ),
        pytest.param(
            Tokens(input=0, output=50, reasoning=30),
            [("output", 8 * USD), ("reasoning", 2 * USD, 1_000)],
            {"output": 400_000},
            id="a part's tier that is not reached is no rate",
        ),
        pytest.param(
            Tokens(input=3, output=0),
            [("input", 333_333)],
            {"input": 0},
            id="a fraction of a nano is dropped",
        ),
        pytest.param(Tokens(input=7, output=0), [("input", 0)], {"input": 0}, id="a rate of nothing"),
        pytest.param(Tokens(input=0, output=0), [], {}, id="no tokens need no rate"),
    ],
)
def test_a_priced_breakdown(tokens: Tokens, rates: list[tuple[str, int]], breakdown: dict[str, int]) -> None:
    assert price(tokens=tokens, prices=price_list(*rates)) == Price(sum(breakdown.values()), breakdown)


@pytest.mark.parametrize(
    ("tokens", "prices"),
    [
        pytest.param(None, PLAIN, id="unknown tokens"),
        pytest.param(Tokens(input=1, output=1), None, id="no price list"),
        pytest.param(Tokens(input=1, output=1, cache_write=1), PLAIN, id="a meter without a rate"),
        pytest.param(
            Tokens(input=10, output=0), price_list(("input", USD, 11)), id="only a tier not reached"
        ),
        pytest.param(
            Tokens(input=0, output=50, reasoning=49),
            price_list(("reasoning", USD)),
            id="the rest of a whole without a rate",
        ),
        pytest.param(
            Tokens(input=10**12, output=0), price_list(("input", 2**62)), id="a cost beyond a column"
        ),
    ],
)
def test_what_cannot_be_priced_is_unpriced_and_not_free(tokens: Tokens | None, prices: PriceList) -> None:
    assert price(tokens=tokens, prices=prices) == UNPRICED
    assert UNPRICED.cost_nanos is None


def test_any_cost_is_the_sum_of_its_breakdown_and_never_falls_with_more_tokens() -> None:
    numbers = random.Random(20261021)  # a fixed seed: the same table each time
    rates = price_list(*((meter, numbers.randrange(10 * USD)) for meter in ("input", "output", "reasoning")))
    for _ in range(500):
        output = numbers.randrange(5_000)
        tokens = Tokens(
            input=numbers.randrange(300_000), output=output, reasoning=numbers.randrange(output + 1)
        )
        cost = price(tokens=tokens, prices=rates)
        more = price(
            tokens=Tokens(input=tokens.input + 1, output=output, reasoning=tokens.reasoning), prices=rates
        )
        assert cost.cost_nanos == sum(cost.breakdown.values())
        assert isinstance(cost.cost_nanos, int)
        assert more.cost_nanos is not None
        assert more.cost_nanos >= cost.cost_nanos
