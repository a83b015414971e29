from __future__ import annotations

import pytest

from routing.catalog.changes import Change
from routing.catalog.problems import CatalogRejected, Problem, format_name


def test_problems_come_once_and_in_the_order_of_their_lines() -> None:
    rejected = CatalogRejected([Problem(9, "b"), Problem(2, "c"), Problem(0, "a"), Problem(9, "b")])
    assert rejected.problems == (Problem(0, "a"), Problem(2, "c"), Problem(9, "b"))
    assert str(rejected) == "a; line 2: c; line 9: b"


@pytest.mark.parametrize(
    ("name", "formatted"),
    [
        ("gpt-4o", "gpt-4o"),
        ("two words", "two words"),
        ("青空", "青空"),
        (" padded", "' padded'"),
        ("two\nlines", "'two\\nlines'"),
        ("\u2028", "'\\u2028'"),
        ("", ""),
    ],
)
def test_a_name_cannot_break_its_line(name: str, formatted: str) -> None:
    assert format_name(name) == formatted


def test_a_change_is_one_line_with_the_names_of_its_fields() -> None:
    assert str(Change("create", "model", "a\nb")) == "create model 'a\\nb'"
    assert (
        str(Change("update", "policy", "p", ("models", "host_keys"))) == "update policy p: models, host_keys"
    )
