"""How a model's name may be read, and what a grant covers."""

from __future__ import annotations

import pytest

from routing.resolution.model_names import (
    ParsedModelName,
    is_granted,
    parse_model_name,
    printable_name,
    wildcard_prefixes,
)


def test_an_exact_name_wins_over_every_split_one() -> None:
    assert parse_model_name("a/b@c/d@e") == [
        ParsedModelName("a/b@c/d@e"),
        ParsedModelName("b@c/d@e", "a", None),
        ParsedModelName("a/b@c/d", None, "e"),
        ParsedModelName("b@c/d", "a", "e"),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m", [ParsedModelName("m")]),
        ("p/m", [ParsedModelName("p/m"), ParsedModelName("m", "p")]),
        ("m@h", [ParsedModelName("m@h"), ParsedModelName("m", None, "h")]),
        ("p/", [ParsedModelName("p/")]),
        ("@h", [ParsedModelName("@h")]),
        ("h@a/b", [ParsedModelName("h@a/b"), ParsedModelName("b", "h@a"), ParsedModelName("h", None, "a/b")]),
        ("😀 x:y", [ParsedModelName("😀 x:y")]),
    ],
)
def test_the_first_slash_ends_a_provider_and_the_last_at_begins_a_host(
    name: str, expected: list[ParsedModelName]
) -> None:
    assert parse_model_name(name) == expected


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud800", "x" * 703])
def test_what_no_row_can_be_called_has_no_reading(name: str) -> None:
    assert parse_model_name(name) == []


def test_a_name_of_300_characters_can_be_split() -> None:
    model = "😀" * 300
    assert parse_model_name(f"{'p' * 200}/{model}@{'h' * 200}") == [
        ParsedModelName(model, "p" * 200, "h" * 200)
    ]


def test_every_beginning_of_a_name_may_be_a_wildcards() -> None:
    assert wildcard_prefixes("abc") == ["", "a", "ab", "abc"]
    assert len(wildcard_prefixes("x" * 700)) == 301


def test_what_rows_refuse_is_replaced_in_messages() -> None:
    assert printable_name("a\x00\ud800b") == "a\ufffd\ufffdb"
    assert len(printable_name("x" * 10_000)) == 300


@pytest.mark.parametrize(
    ("grants", "host", "expected"),
    [
        (set(), "h", True),
        (set(), None, True),
        ({"p"}, "h", True),
        ({"p"}, None, True),
        ({"p/m"}, "h", True),
        ({"p/m"}, None, True),
        ({"p/m@h"}, "h", True),
        ({"p/m@h"}, "g", False),
        ({"p/m@h"}, None, False),
        ({"p@h"}, "h", True),
        ({"p@h"}, "g", False),
        ({"@h"}, "h", True),
        ({"@h"}, "g", False),
        ({"m"}, "h", False),
        ({"q", "q/m", "p/n", "@g"}, "h", False),
    ],
)
def test_a_grant_covers_what_it_says(grants: set[str], host: str | None, expected: bool) -> None:
    assert is_granted(grants, provider="p", model="m", host=host) is expected
