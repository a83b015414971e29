"""Vendors' bills: each documented form of `usage`, read from docs/vendors/vendor-usage.md, and what it comes to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from routing.adapters import ADAPTERS
from routing.calls.call import PriceList, PriceRate, Tokens
from routing.meters import METERS, WHOLES
from routing.upstream.response_usage import usage_of_error, usage_of_response
from usage.pricing import price

PAGE = (Path(__file__).parents[4] / "docs" / "vendors" / "vendor-usage.md").read_text()
USD = 10**9  # nano-units
RATES = {"input": 2 * USD, "cache_read": USD // 2, "cache_write": 5 * USD // 2, "output": 8 * USD}
# Vendor -> adapter, tokens, price in nanos, what the upstream says it cost.
BILLS: dict[str, tuple[str, Tokens, int, int | None]] = {
    "OpenAI": (
        "openai",
        Tokens(input=200, cache_read=2_000, cache_write=400, output=300, reasoning=120),
        4_800_000,
        None,
    ),
    "OpenAI Responses": ("openai_responses", Tokens(input=36, output=87), 768_000, None),
    "OpenAI embeddings": ("openai_embeddings", Tokens(input=8, output=0), 16_000, None),
    "Azure": (
        "openai",
        Tokens(input=158, cache_read=1_408, output=1_518, reasoning=576),
        13_164_000,
        None,
    ),
    "Gemini": ("openai", Tokens(input=21, output=60, reasoning=60), 522_000, None),
    "Z.ai": ("openai", Tokens(input=400, cache_read=800, output=300), 3_600_000, None),
    "Perplexity": (
        "openai",
        Tokens(input=7_407, output=76_504, reasoning=73_248),
        626_846_000,
        630_606_000,
    ),
    "OpenRouter": ("openai", Tokens(input=94, cache_write=100, output=2), 454_000, 950_000_000),
    "DeepSeek": ("openai", Tokens(input=20, cache_read=80, output=50), 480_000, None),
    "Groq": ("openai", Tokens(input=33, cache_read=4_608, output=1_817), 16_906_000, None),
    "Mistral": ("openai", Tokens(input=360, cache_read=640, output=200), 2_640_000, None),
    "Mistral embeddings": ("openai_embeddings", Tokens(input=65, output=0), 130_000, None),
    "Together": ("openai", Tokens(input=60, cache_read=40, output=50), 540_000, None),
    "Moonshot": ("openai", Tokens(input=9, cache_read=10, output=21), 191_000, None),
    "vLLM": ("openai", Tokens(input=11, output=100), 822_000, None),
    "vLLM embeddings": ("openai_embeddings", Tokens(input=6, output=0), 12_000, None),
    "Ollama": ("openai", Tokens(input=26, output=298), 2_436_000, None),
    "xAI": ("openai", Tokens(input=20, output=70, reasoning=60), 600_000, 600_000),
    "Anthropic": (
        "anthropic",
        Tokens(
            input=50,
            cache_read=100_000,
            cache_write=248,
            output=503,
            cache_write_5m=148,
            cache_write_1h=100,
        ),
        54_744_000,
        None,
    ),
}
CHAT = {"prompt_tokens": 100, "completion_tokens": 50}


def prices(**more: int) -> PriceList:
    rates = tuple(PriceRate(meter, nanos, above_tokens=0) for meter, nanos in {**RATES, **more}.items())
    return PriceList(name="p", version=1, currency="USD", rates=rates)


def sections() -> dict[str, str]:
    """The page's sections that show a usage, by heading."""
    parts = re.split(r"^## (.+)\n", PAGE, flags=re.MULTILINE)[1:]
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    return {name: text for name, text in found.items() if "```json" in text}


def documented_usage(vendor: str) -> str:
    (found,) = re.findall(r"```json\n(.*?)```", sections()[vendor], re.DOTALL)
    return str(found)


def said(tokens: Tokens, nanos: int, upstream: int | None) -> str:
    """The line beneath an example of the page."""
    counts = {meter: getattr(tokens, meter) for meter in METERS}
    words = ", ".join(f"`{meter}` {count:,}" for meter, count in counts.items() if count)
    cost = "" if upstream is None else f", `upstream_cost_nanos` {upstream:,}"
    return f"{words}: {nanos:,} nanos{cost}."


def tokens_of(usage: Any, adapter: str = "openai") -> Tokens | None:
    return ADAPTERS[adapter].usage(usage)


def cost_of(cost: str, *, counts: str = '"prompt_tokens": 1, "completion_tokens": 1') -> int | None:
    body = f'{{"choices": [], "usage": {{{counts}, {cost}}}}}'
    return usage_of_response(body.encode(), ADAPTERS["openai"]).upstream_cost_nanos


def test_the_page_has_an_example_of_each_vendor() -> None:
    assert list(sections()) == list(BILLS)


@pytest.mark.parametrize("vendor", BILLS)
def test_a_documented_usage_is_metered_and_priced_as_the_vendor_bills(vendor: str) -> None:
    adapter, tokens, nanos, upstream = BILLS[vendor]
    answer = f'{{"choices": [], "output": [], "content": [], "usage": {documented_usage(vendor)}}}'
    used = usage_of_response(answer.encode(), ADAPTERS[adapter])
    assert (used.tokens, used.upstream_cost_nanos) == (tokens, upstream)
    assert price(tokens=tokens, prices=prices()).cost_nanos == nanos


@pytest.mark.parametrize("vendor", BILLS)
def test_the_page_says_what_it_comes_to(vendor: str) -> None:
    _, tokens, nanos, upstream = BILLS[vendor]
    assert said(tokens, nanos, upstream) in " ".join(sections()[vendor].split())


def test_with_a_rate_for_reasoning_a_deep_research_costs_what_perplexity_says_but_for_the_searches() -> None:
    tokens = tokens_of(json.loads(documented_usage("Perplexity")))
    assert price(tokens=tokens, prices=prices(reasoning=3 * USD)).cost_nanos == 630_606_000 - 370_000_000


@pytest.mark.parametrize(
    "cached",
    [
        {"prompt_tokens_details": {"cached_tokens": 80}},
        {"prompt_token_details": {"cached_tokens": 80}},
        {"prompt_cache_hit_tokens": 80},
        {"cached_tokens": 80},
        {"num_cached_tokens": 80},
        {"prompt_tokens_details": {"cached_tokens": 80}, "prompt_cache_hit_tokens": 7, "cached_tokens": 9},
        {"prompt_tokens_details": None, "prompt_cache_hit_tokens": 80},
        {"prompt_tokens_details": {}, "prompt_cache_hit_tokens": 80},
        {"prompt_tokens_details": {"cached_tokens": None}, "prompt_cache_hit_tokens": 80},
        {"prompt_tokens_details": {"cached_tokens": -3}, "cached_tokens": 80},
        {"prompt_cache_hit_tokens": "many", "num_cached_tokens": 80},
    ],
    ids=repr,
)
def test_cached_tokens_are_the_first_count_among_the_vendors_names(cached: dict[str, Any]) -> None:
    assert tokens_of({**CHAT, **cached}) == Tokens(input=20, cache_read=80, output=50)


def test_no_cached_token_is_a_count_as_well() -> None:
    usage = {**CHAT, "prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": 80}
    assert tokens_of(usage) == Tokens(input=100, output=50)


@pytest.mark.parametrize(
    ("total", "output"),
    [
        (210, 110),
        (150, 50),
        (209, 50),
        (211, 50),
        (None, 50),
        (210.0, 50),
        ("210", 50),
        (True, 50),
    ],
)
@pytest.mark.parametrize("adapter", ["openai", "openai_responses"])
def test_reasoning_is_added_only_where_the_total_says_that_it_lies_outside(
    adapter: str, total: Any, output: int
) -> None:
    names = {
        "openai": ("prompt_tokens", "completion_tokens", "completion_tokens_details"),
        "openai_responses": ("input_tokens", "output_tokens", "output_tokens_details"),
    }
    prompt, completion, details = names[adapter]
    usage = {prompt: 100, completion: 50, details: {"reasoning_tokens": 60}, "total_tokens": total}
    assert tokens_of(usage, adapter) == Tokens(input=100, output=output, reasoning=min(60, output))


def test_true_is_no_total() -> None:
    nothing = {"prompt_tokens": 0, "completion_tokens": 0}
    usage = {**nothing, "completion_tokens_details": {"reasoning_tokens": 1}, "total_tokens": True}
    assert tokens_of(usage) == Tokens(input=0, output=0)


def test_a_total_beyond_what_is_said_adds_nothing() -> None:
    assert tokens_of({**CHAT, "total_tokens": 1_000}) == Tokens(input=100, output=50)


@pytest.mark.parametrize(
    ("cost", "tokens"),
    [
        (
            {"reasoning_tokens_cost": 0.1, "citation_tokens_cost": 0.1},
            Tokens(input=130, output=110, reasoning=60),
        ),
        ({"reasoning_tokens_cost": 1}, Tokens(input=100, output=110, reasoning=60)),
        ({"citation_tokens_cost": 0.1}, Tokens(input=130, output=50, reasoning=50)),
        (
            {"reasoning_tokens_cost": 0, "citation_tokens_cost": None},
            Tokens(input=100, output=50, reasoning=50),
        ),
        (
            {"reasoning_tokens_cost": True, "citation_tokens_cost": "1"},
            Tokens(input=100, output=50, reasoning=50),
        ),
        (0.5, Tokens(input=100, output=50, reasoning=50)),
    ],
    ids=repr,
)
def test_what_perplexity_bills_apart_is_added_where_its_cost_says_so(cost: Any, tokens: Tokens) -> None:
    assert tokens_of({**CHAT, "reasoning_tokens": 60, "citation_tokens": 30, "cost": cost}) == tokens


@pytest.mark.parametrize(
    ("details", "tokens"),
    [
        (
            {"cached_tokens": 70, "cache_write_tokens": 70},
            Tokens(input=0, cache_read=70, cache_write=30, output=50),
        ),
        ({"cache_write_tokens": 400}, Tokens(input=0, cache_write=100, output=50)),
        ({"cached_tokens": 101, "cache_write_tokens": 1}, Tokens(input=0, cache_read=100, output=50)),
        ({"cached_tokens": 10, "cache_write_tokens": -1}, Tokens(input=90, cache_read=10, output=50)),
        ({"cached_tokens": 10, "cache_write_tokens": 5.0}, Tokens(input=90, cache_read=10, output=50)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("adapter", ["openai", "openai_responses"])
def test_parts_of_a_prompt_never_exceed_it(adapter: str, details: Any, tokens: Tokens) -> None:
    if adapter == "openai":
        usage = {**CHAT, "prompt_tokens_details": details}
    else:
        usage = {"input_tokens": 100, "output_tokens": 50, "input_tokens_details": details}
    assert tokens_of(usage, adapter) == tokens


HALF = 2**62


@pytest.mark.parametrize(
    ("adapter", "usage"),
    [
        ("openai", {"prompt_tokens": HALF, "completion_tokens": HALF}),
        (
            "openai",
            {
                "prompt_tokens": 1,
                "completion_tokens": HALF,
                "total_tokens": 1 + 2 * HALF,
                "completion_tokens_details": {"reasoning_tokens": HALF},
            },
        ),
        ("openai_responses", {"input_tokens": HALF, "output_tokens": HALF}),
        ("anthropic", {"input_tokens": HALF, "output_tokens": 0, "cache_read_input_tokens": HALF}),
        ("anthropic", {"input_tokens": HALF, "output_tokens": 0, "cache_creation_input_tokens": HALF}),
    ],
)
def test_counts_whose_sum_no_bigint_holds_are_unknown(adapter: str, usage: dict[str, Any]) -> None:
    assert tokens_of(usage, adapter) is None


@pytest.mark.parametrize(
    ("cost", "nanos"),
    [
        ('"cost": 0.00014', 140_000),
        ('"cost": 1.4E-4', 140_000),
        ('"cost": 1e-05', 10_000),
        ('"cost": 0', 0),
        ('"cost": -0.0', 0),
        ('"cost": 3', 3_000_000_000),
        ('"cost": 0.0000000019', 1),
        ('"cost": 1e-999999999', 0),
        ('"cost": 0.1000000000000000055511151231257827', 100_000_000),
        ('"cost": 0.' + "1" * 70, 111_111_111),
        ('"cost": 9223372036.854775807', 2**63 - 1),
        ('"cost": {"total_cost": 0.005084, "currency": "USD"}', 5_084_000),
        ('"cost_in_usd_ticks": 37756000', 3_775_600),
        ('"cost_in_usd_ticks": 19', 1),
        ('"cost": null, "cost_in_usd_ticks": 37756000', 3_775_600),
    ],
)
def test_an_upstreams_own_cost_is_kept_from_the_digits_as_written(cost: str, nanos: int) -> None:
    assert cost_of(cost) == nanos


@pytest.mark.parametrize(
    "cost",
    [
        '"cost": -0.01',
        '"cost": -1e-30',
        '"cost": 9223372036.854775808',
        '"cost": 1e999999999',
        '"cost": 1' + "0" * 60,
        '"cost": 1e99999999999999999999999',
        '"cost": -1e99999999999999999999999',
        '"cost": "0.01"',
        '"cost": true',
        '"cost": null',
        '"cost": [0.01]',
        '"cost": {"total_cost": "0.01"}',
        '"cost": {"total_cost": null}',
        '"cost": {"total_cost": {"total_cost": 1}}',
        '"cost": {}',
        '"costs": 1',
        '"cost_in_usd_ticks": -10',
        '"cost_in_usd_ticks": 92233720368547758080',
        '"cost_in_usd_ticks": 1.5',
        '"cost_in_usd_ticks": "10"',
    ],
)
def test_an_odd_cost_is_none_and_leaves_the_tokens_alone(cost: str) -> None:
    assert cost_of(cost) is None
    body = f'{{"choices": [], "usage": {{"prompt_tokens": 1, "completion_tokens": 1, {cost}}}}}'
    assert usage_of_response(body.encode(), ADAPTERS["openai"]).tokens == Tokens(input=1, output=1)


def test_a_cost_is_kept_where_the_tokens_are_unknown() -> None:
    assert cost_of('"cost": 0.25', counts='"prompt_tokens": null') == 250_000_000


@pytest.mark.parametrize(
    ("usage", "is_reported"),
    [
        ("null", False),
        ("[]", False),
        ("{}", False),
        ('""', False),
        ('"x"', True),
        ("1", True),
        ("[[[[]]]]", True),
        ('{"prompt_tokens": ' + "9" * 5_000 + "}", True),
        ('{"note": "' + "x" * 70_000 + '"}', True),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_usage_of_another_form_counts_nothing_and_is_not_taken_for_none(
    usage: str, is_reported: bool
) -> None:
    used = usage_of_error(f'{{"error": "no", "usage": {usage}}}'.encode(), ADAPTERS["openai"])
    assert (used.tokens, used.upstream_cost_nanos, used.is_reported) == (None, None, is_reported)


# One usage with all that a shape can say: what an adapter names is exactly what comes out of it.
FULL: dict[str, dict[str, Any]] = {
    "openai": {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 20},
        "completion_tokens_details": {"reasoning_tokens": 5},
    },
    "openai_responses": {
        "input_tokens": 100,
        "output_tokens": 50,
        "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 20},
        "output_tokens_details": {"reasoning_tokens": 5},
    },
    "anthropic": {
        "input_tokens": 100,
        "output_tokens": 50,
        "cache_read_input_tokens": 10,
        "cache_creation_input_tokens": 20,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 10},
    },
    "openai_embeddings": {"prompt_tokens": 100},
}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_names_exactly_the_meters_that_its_usage_gives(adapter: str) -> None:
    tokens = tokens_of(FULL[adapter], adapter)
    assert ADAPTERS[adapter].meters == {meter for meter in METERS if getattr(tokens, meter)}
    assert "input" in ADAPTERS[adapter].meters & set(WHOLES)
