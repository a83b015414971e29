"""From a node to a value, by the kind of value. A reader raises Wrong or ValueError with the form expected."""

# ruff: noqa: ARG001 -- all readers share one signature

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog import validators
from routing.catalog.document import line_of
from routing.catalog.fields import Check, Field, ParseContext, Parser, parse_record
from routing.catalog.problems import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_TEXT_TAG = "tag:yaml.org,2002:str"
_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def text(form: Callable[[str], Any]) -> Parser:
    """Text in the given form. What YAML takes for a number, a date or a truth value must be quoted."""

    def read(node: yaml.Node, path: str, reading: ParseContext) -> Any:
        return form(_join_surrogates(_scalar_value(node, (_TEXT_TAG,), "expected text: put it in quotes")))

    return read


def amount(node: yaml.Node, path: str, reading: ParseContext) -> int:
    """Money, from the digits as written: a float would have rounded them."""
    return validators.nanos(_scalar_value(node, (_TEXT_TAG, *_NUMBER_TAGS), 'expected an amount, as "2.50"'))


def integer(*, minimum: int, maximum: int) -> Parser:
    def read(node: yaml.Node, path: str, reading: ParseContext) -> int:
        form = f"expected a whole number from {minimum} to {maximum}"
        return validators.integer(_scalar_value(node, _NUMBER_TAGS, form), minimum=minimum, maximum=maximum)

    return read


def boolean(node: yaml.Node, path: str, reading: ParseContext) -> bool:
    return _BOOLEANS[_scalar_value(node, ("tag:yaml.org,2002:bool",), "expected true or false").lower()]


def choice(options: Iterable[str]) -> Parser:
    known = tuple(options)

    def read(node: yaml.Node, path: str, reading: ParseContext) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.value not in known:
            raise InvalidValue(f"expected one of {', '.join(known)}")
        return str(node.value)

    return read


def reference(section: str) -> Parser:
    """The name of a row; whether there is one is looked up when the whole file has been read."""

    def read(node: yaml.Node, path: str, reading: ParseContext) -> str:
        name = _join_surrogates(_scalar_value(node, (_TEXT_TAG,), "expected a name: put it in quotes"))
        reading.add_reference(node, path, section=section, name=name)
        return name

    return read


def list_of(parser: Parser, *, unique_by: Callable[[Any], Hashable] | None = lambda value: value) -> Parser:
    """A list, whose items differ in what `once` makes of them (None: they may be equal)."""

    def read(node: yaml.Node, path: str, reading: ParseContext) -> tuple[Any, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise InvalidValue("expected a list")
        lines: dict[Hashable, int] = {}
        values = []
        for number, child in enumerate(node.value):
            before = len(reading.problems)
            value = reading.parse_or_report(parser, child, f"{path}[{number}]")
            if len(reading.problems) > before:
                continue
            mark = number if unique_by is None else unique_by(value)
            if mark in lines:
                reading.add_problem(child, f"{path}[{number}]", f"given twice, first in line {lines[mark]}")
            lines.setdefault(mark, line_of(child))
            values.append(value)
        return tuple(values)

    return read


def record(*fields: Field, check: Check | None = None) -> Parser:
    def read(node: yaml.Node, path: str, reading: ParseContext) -> dict[str, Any]:
        return parse_record(node, path, reading, fields=fields, check=check)

    return read


def list_of_records(key: str, list_parser: Parser) -> Parser:
    """A list of plain values as records with that one key."""

    def read(node: yaml.Node, path: str, reading: ParseContext) -> tuple[dict[str, Any], ...]:
        return tuple({key: value} for value in list_parser(node, path, reading))

    return read


def without_disabled(list_parser: Parser) -> Parser:
    """Records that the rows have no switch for: one that is `enabled: false` is left out."""

    def read(node: yaml.Node, path: str, reading: ParseContext) -> tuple[dict[str, Any], ...]:
        return tuple(each for each in list_parser(node, path, reading) if each["enabled"])

    return read


def alias(node: yaml.Node, path: str, reading: ParseContext) -> dict[str, Any]:
    """`prefix*` is stored as the prefix. An alias belongs to one model of the whole catalog."""
    pattern = text(validators.alias)(node, path, reading)
    reading.add_reference(node, path, section="aliases", name=pattern)
    return {"pattern": pattern.removesuffix("*"), "wildcard": pattern.endswith("*")}


def grant(node: yaml.Node, path: str, reading: ParseContext) -> str:
    words = text(str)(node, path, reading)
    if not 1 <= len(words) <= 800 or "\x00" in words:
        raise InvalidValue("expected provider, provider/model, provider/model@host, provider@host or @host")
    reading.add_reference(node, path, section="grants", name=words)
    return str(words)


def _scalar_value(node: yaml.Node, tags: tuple[str, ...], expected: str) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag not in tags:
        raise InvalidValue(expected)
    return str(node.value)


def _join_surrogates(value: str) -> str:
    """JSON writes characters beyond the basic plane as two escapes, which YAML leaves apart."""
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidValue("expected text without lone surrogates") from None
