"""Records: defaults, keys of values, and when a record's own check runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog.fields import parsers
from routing.catalog.fields.records import Field, ParseContext, parse_record

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELDS = (
    Field("low", parsers.integer(minimum=0, maximum=9), required=True),
    Field("high", parsers.integer(minimum=0, maximum=9), default=9, value_key="top"),
)


def _check_order(record: dict[str, Any]) -> Iterator[str]:
    if record["low"] > record["top"]:
        yield "expected low to be at most high"


def parse(text: str) -> tuple[dict[str, Any], list[str]]:
    context = ParseContext()
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None
    record = parse_record(node, "x", context, fields=FIELDS, check=_check_order)
    return record, [problem.message for problem in context.problems]


def test_a_value_has_the_key_of_its_field() -> None:
    assert parse("{low: 1, high: 2}") == ({"low": 1, "top": 2}, [])


def test_a_field_that_is_absent_or_null_has_its_default() -> None:
    assert parse("{low: 1}") == ({"low": 1, "top": 9}, [])
    assert parse("{low: 1, high: null}") == ({"low": 1, "top": 9}, [])
    assert parse("{low: null}") == ({"low": None, "top": 9}, ["x: low is missing"])


def test_a_record_is_checked_when_its_fields_are_right() -> None:
    assert parse("{low: 5, high: 2}")[1] == ["x: expected low to be at most high"]
    assert parse("{low: 5, high: no}")[1] == ["x.high: expected a whole number from 0 to 9"]
