"""The adapters: what usage says, however odd."""

from __future__ import annotations

from typing import Any

import pytest

from routing.adapters import ADAPTERS
from routing.calls.call import Tokens

HOSTILE = [None, "", "12", -1, 1.0, 1.5, True, 2**63, 2**70, [], {}, [1], {"a": 1}]


@pytest.mark.parametrize(
    ("adapter", "usage", "tokens"),
    [
        ("openai", {"prompt_tokens": 100, "completion_tokens": 50}, Tokens(input=100, output=50)),
        (
            "openai",
            {
                "prompt_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 40, "audio_tokens": 1},
                "completion_tokens": 50,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Tokens(input=60, cache_read=40, output=50, reasoning=20),
        ),
        ("openai", {"prompt_tokens": 0, "completion_tokens": 0}, Tokens(input=0, output=0)),
        (
            "openai",
            {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}},
            Tokens(input=0, cache_read=5, output=1),
        ),
        (
            "openai_responses",
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 40},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 20},
            },
            Tokens(input=60, cache_read=40, output=50, reasoning=20),
        ),
        (
            "anthropic",
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 20,
                "cache_creation_input_tokens": 30,
                "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
                "output_tokens": 40,
            },
            Tokens(input=10, cache_read=20, cache_write=30, cache_write_5m=10, cache_write_1h=20, output=40),
        ),
        ("anthropic", {"input_tokens": 10, "output_tokens": 40}, Tokens(input=10, output=40)),
        ("openai_embeddings", {"prompt_tokens": 8, "total_tokens": 8}, Tokens(input=8, output=0)),
        ("openai_embeddings", {"prompt_tokens": 0}, Tokens(input=0, output=0)),
        (
            "openai_embeddings",
            {"prompt_tokens": 8, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 3}},
            Tokens(input=8, output=0),
        ),
    ],
)
def test_meters_never_overlap(adapter: str, usage: dict[str, Any], tokens: Tokens) -> None:
    assert ADAPTERS[adapter].usage(usage) == tokens


@pytest.mark.parametrize(
    ("adapter", "names"),
    [
        ("openai", ("prompt_tokens", "completion_tokens")),
        ("openai_responses", ("input_tokens", "output_tokens")),
        ("anthropic", ("input_tokens", "output_tokens")),
    ],
)
@pytest.mark.parametrize("odd", HOSTILE, ids=repr)
def test_an_odd_count_makes_the_tokens_unknown(adapter: str, names: tuple[str, str], odd: Any) -> None:
    usage = ADAPTERS[adapter].usage
    one, other = names

    assert usage({one: odd, other: 1}) is None
    assert usage({one: 1, other: odd}) is None
    assert usage({one: 1}) is None
    assert usage(odd) is None


@pytest.mark.parametrize("odd", HOSTILE, ids=repr)
def test_an_odd_count_of_an_embedding_makes_its_tokens_unknown(odd: Any) -> None:
    usage = ADAPTERS["openai_embeddings"].usage
    assert usage({"prompt_tokens": odd, "total_tokens": 8}) is None
    assert usage(odd) is None


def test_a_total_alone_is_no_count_of_an_embeddings_prompt() -> None:
    assert ADAPTERS["openai_embeddings"].usage({"total_tokens": 8}) is None


@pytest.mark.parametrize("odd", HOSTILE, ids=repr)
def test_an_odd_detail_counts_as_none(odd: Any) -> None:
    details = {"cached_tokens": odd, "reasoning_tokens": odd}
    for shape in (details, odd):
        assert ADAPTERS["openai"].usage(
            {
                "prompt_tokens": 3,
                "completion_tokens": 4,
                "prompt_tokens_details": shape,
                "completion_tokens_details": shape,
            }
        ) == Tokens(input=3, output=4)
        assert ADAPTERS["anthropic"].usage(
            {
                "input_tokens": 3,
                "output_tokens": 4,
                "cache_read_input_tokens": odd,
                "cache_creation_input_tokens": odd,
                "cache_creation": shape,
            }
        ) == Tokens(input=3, output=4)
