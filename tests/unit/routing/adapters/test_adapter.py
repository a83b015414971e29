from __future__ import annotations

from typing import Any

import pytest

from routing.adapters.adapter import (
    MAX_COUNT,
    as_count,
    as_mapping,
    as_part,
    if_countable,
    join_full_path,
    join_path,
    rename_model,
)
from routing.calls.call import Tokens


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://h", "https://h/v1/chat/completions"),
        ("https://h/", "https://h/v1/chat/completions"),
        ("https://h/v1", "https://h/v1/chat/completions"),
        ("https://h/api/paas/v4", "https://h/api/paas/v4/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
    ],
)
def test_a_base_url_with_a_path_gets_only_what_follows_v1(base_url: str, url: str) -> None:
    assert join_path("/v1/chat/completions")(base_url) == url


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://h", "https://h/v1/messages"),
        ("https://h/v1", "https://h/v1/messages"),
        ("https://h/anthropic", "https://h/anthropic/v1/messages"),
        ("https://h/anthropic/v1/messages", "https://h/anthropic/v1/messages"),
    ],
)
def test_a_full_path_is_joined_whole_and_v1_is_not_doubled(base_url: str, url: str) -> None:
    assert join_full_path("/v1/messages")(base_url) == url


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (0, 0),
        (7, 7),
        (MAX_COUNT, MAX_COUNT),
        (MAX_COUNT + 1, None),
        (-1, None),
        (True, None),
        (1.0, None),
        ("7", None),
        (None, None),
    ],
)
def test_only_whole_numbers_that_fit_a_bigint_are_counts(value: Any, count: int | None) -> None:
    assert as_count(value) == count
    assert as_part(value, of=5) == min(count or 0, 5)


def test_everything_but_an_object_is_an_empty_mapping() -> None:
    assert as_mapping({"a": 1}) == {"a": 1}
    others: list[Any] = [None, [], "x", 1]
    assert [as_mapping(value) for value in others] == [{}] * 4


def test_tokens_whose_sum_is_no_bigint_are_unknown() -> None:
    most = Tokens(input=MAX_COUNT - 1, output=1)
    assert if_countable(most) == most
    assert if_countable(Tokens(input=MAX_COUNT, output=1)) is None


def test_a_body_changes_only_for_another_name() -> None:
    body = b'{ "model" : "a", "n": 1.0 }'
    assert rename_model(body, model="a", upstream_name="a") is body
    assert rename_model(body, model="a", upstream_name="b") == b'{ "model" : "b", "n": 1.0 }'
