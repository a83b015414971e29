"""Parsers of single values: what each takes, what it gives, and what it says about anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from routing.catalog.fields import parsers
from routing.catalog.fields.records import Field, ParseContext
from routing.catalog.problems import Problem

if TYPE_CHECKING:
    from routing.catalog.fields.records import Parser

SIZES = parsers.record(
    Field("size", parsers.integer(minimum=1, maximum=9), required=True),
    Field("enabled", parsers.boolean, default=True),
)
LIST_OF_SIZES = parsers.list_of(SIZES, unique_by=lambda size: size["size"])


def parse(parser: Parser, text: str) -> tuple[Any, list[str], ParseContext]:
    """The value, the problems' messages and the context."""
    context = ParseContext()
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None
    value = context.parse_or_report(parser, node, "x")
    return value, [problem.message for problem in context.problems], context


@pytest.mark.parametrize(
    ("parser", "text", "value"),
    [
        (parsers.text(str), "word", "word"),
        (parsers.text(str), "'5'", "5"),
        (parsers.text(str.upper), "word", "WORD"),
        (parsers.amount, "2.50", 2_500_000_000),
        (parsers.amount, "'2.50'", 2_500_000_000),
        (parsers.integer(minimum=0, maximum=9), "9", 9),
        (parsers.boolean, "true", True),
        (parsers.boolean, "Off", False),
        (parsers.choice(["a", "b"]), "b", "b"),
        (parsers.reference("hosts"), "name", "name"),
        (parsers.list_of(parsers.boolean, unique_by=None), "[true, true]", (True, True)),
        (parsers.list_of_records("host", parsers.list_of(parsers.text(str))), "[a]", ({"host": "a"},)),
        (parsers.alias, "gpt-4o", {"pattern": "gpt-4o", "wildcard": False}),
        (parsers.alias, "gpt-*", {"pattern": "gpt-", "wildcard": True}),
        (parsers.grant, "provider/model@host", "provider/model@host"),
        (SIZES, "{size: 3}", {"size": 3, "enabled": True}),
        (parsers.without_disabled(LIST_OF_SIZES), "[{size: 1, enabled: false}]", ()),
    ],
)
def test_a_value_is_parsed(parser: Parser, text: str, value: Any) -> None:
    assert parse(parser, text)[:2] == (value, [])


@pytest.mark.parametrize(
    ("parser", "text", "message"),
    [
        (parsers.text(str), "5", "x: expected text: put it in quotes"),
        (parsers.text(str), "[a]", "x: expected text: put it in quotes"),
        (parsers.amount, "true", 'x: expected an amount, as "2.50"'),
        (parsers.integer(minimum=0, maximum=9), "10", "x: expected a whole number from 0 to 9"),
        (parsers.integer(minimum=0, maximum=9), "'5'", "x: expected a whole number from 0 to 9"),
        (parsers.boolean, "1", "x: expected true or false"),
        (parsers.choice(["a", "b"]), "c", "x: expected one of a, b"),
        (parsers.list_of(parsers.boolean), "true", "x: expected a list"),
        (parsers.list_of(parsers.text(str)), "[a, b, a]", "x[2]: given twice, first in line 1"),
        (parsers.alias, "a*b", "x: expected at most one *, as the last character"),
        (
            parsers.grant,
            "''",
            "x: expected provider, provider/model, provider/model@host, provider@host or @host",
        ),
        (SIZES, "[]", "x: expected a mapping with enabled, size"),
        (SIZES, "{}", "x: size is missing"),
        (SIZES, "{size: 3, colour: red}", "x: unknown field colour: known are enabled, size"),
        (SIZES, "{size: 3, size: 4}", "x: size is given twice"),
    ],
)
def test_another_value_is_a_problem_with_its_path(parser: Parser, text: str, message: str) -> None:
    assert parse(parser, text)[1] == [message]


def test_an_item_with_a_problem_is_left_out_and_the_others_are_parsed() -> None:
    value, messages, _ = parse(parsers.list_of(parsers.boolean, unique_by=None), "[true, 5, false]")
    assert (value, messages) == ((True, False), ["x[1]: expected true or false"])


def test_what_a_validator_says_is_the_problem() -> None:
    def reject(_: str) -> str:
        raise ValueError("expected something else")

    assert parse(parsers.text(reject), "word")[:2] == (None, ["x: expected something else"])


def parse_quoted(escapes: str) -> tuple[Any, list[str]]:
    value, messages, _ = parse(parsers.text(str), f'"{escapes}"')
    return value, messages


def test_json_escapes_of_one_character_are_joined_and_half_of_them_is_a_problem() -> None:
    assert parse_quoted("\\ud83d\\ude00") == ("\U0001f600", [])
    assert parse_quoted("\\ud83d") == (None, ["x: expected text without lone surrogates"])


@pytest.mark.parametrize(
    ("parser", "section"),
    [(parsers.reference("hosts"), "hosts"), (parsers.alias, "aliases"), (parsers.grant, "grants")],
)
def test_a_name_is_kept_to_be_resolved_at_the_end(parser: Parser, section: str) -> None:
    (reference,) = parse(parser, "\nname")[2].references
    assert (reference.section, reference.name, reference.line, reference.path) == (section, "name", 2, "x")


def test_a_problem_has_the_line_of_its_own_node() -> None:
    context = parse(LIST_OF_SIZES, "- {size: 1}\n- size: 2\n  enabled: 5\n")[2]
    assert context.problems == [Problem(3, "x[1].enabled: expected true or false")]
