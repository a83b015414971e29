"""How a model's name may be read, and what a grant covers."""

from __future__ import annotations

import pytest

from routing.resolution.model_names import Reading, granted, prefixes, printable, readings


def test_an_exact_name_wins_over_every_split_one() -> None:
    assert readings("a/b@c/d@e") == [
        Reading("a/b@c/d@e"),
        Reading("b@c/d@e", "a", None),
        Reading("a/b@c/d", None, "e"),
        Reading("b@c/d", "a", "e"),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m", [Reading("m")]),
        ("p/m", [Reading("p/m"), Reading("m", "p")]),
        ("m@h", [Reading("m@h"), Reading("m", None, "h")]),
        ("p/", [Reading("p/")]),
        ("@h", [Reading("@h")]),
        ("h@a/b", [Reading("h@a/b"), Reading("b", "h@a"), Reading("h", None, "a/b")]),
        ("😀 x:y", [Reading("😀 x:y")]),
    ],
)
def test_the_first_slash_ends_a_provider_and_the_last_at_begins_a_host(
    name: str, expected: list[Reading]
) -> None:
    assert readings(name) == expected


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud800", "x" * 703])
def test_what_no_row_can_be_called_has_no_reading(name: str) -> None:
    assert readings(name) == []


def test_a_name_of_300_characters_can_be_split() -> None:
    model = "😀" * 300
    assert readings(f"{'p' * 200}/{model}@{'h' * 200}") == [Reading(model, "p" * 200, "h" * 200)]


def test_every_beginning_of_a_name_may_be_a_wildcards() -> None:
    assert prefixes("abc") == ["", "a", "ab", "abc"]
    assert len(prefixes("x" * 700)) == 301


def test_what_rows_refuse_is_replaced_in_messages() -> None:
    assert printable("a\x00\ud800b") == "a\ufffd\ufffdb"
    assert len(printable("x" * 10_000)) == 300


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
    assert granted(grants, provider="p", model="m", host=host) is expected
