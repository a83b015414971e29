"""Parsers of YAML nodes, by the type of value. A parser raises InvalidValue or ValueError with what it expects."""

# ruff: noqa: ARG001 -- all parsers share one signature

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog.document import line_of
from routing.catalog.fields import validators
from routing.catalog.fields.records import Check, Field, ParseContext, Parser, parse_record
from routing.catalog.problems import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_TEXT_TAG = "tag:yaml.org,2002:str"
_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def text(validate: Callable[[str], Any]) -> Parser:
    """Text that `validate` accepts; its result is the value.

    What YAML reads as a number, a date or a boolean must be quoted.
    """

    def parse(node: yaml.Node, path: str, context: ParseContext) -> Any:
        return validate(
            _join_surrogates(_scalar_value(node, (_TEXT_TAG,), "expected text: put it in quotes"))
        )

    return parse


def amount(node: yaml.Node, path: str, context: ParseContext) -> int:
    """Money in nano-units, from the digits as written: a float would have rounded them."""
    return validators.nanos(_scalar_value(node, (_TEXT_TAG, *_NUMBER_TAGS), 'expected an amount, as "2.50"'))


def integer(*, minimum: int, maximum: int) -> Parser:
    def parse(node: yaml.Node, path: str, context: ParseContext) -> int:
        expected = f"expected a whole number from {minimum} to {maximum}"
        digits = _scalar_value(node, _NUMBER_TAGS, expected)
        return validators.integer(digits, minimum=minimum, maximum=maximum)

    return parse


def boolean(node: yaml.Node, path: str, context: ParseContext) -> bool:
    return _BOOLEANS[_scalar_value(node, ("tag:yaml.org,2002:bool",), "expected true or false").lower()]


def choice(options: Iterable[str]) -> Parser:
    known = tuple(options)

    def parse(node: yaml.Node, path: str, context: ParseContext) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.value not in known:
            raise InvalidValue(f"expected one of {', '.join(known)}")
        return str(node.value)

    return parse


def reference(section: str) -> Parser:
    """The name of a row in the section. It is resolved when the whole file has been parsed."""

    def parse(node: yaml.Node, path: str, context: ParseContext) -> str:
        name = _join_surrogates(_scalar_value(node, (_TEXT_TAG,), "expected a name: put it in quotes"))
        context.add_reference(node, path, section=section, name=name)
        return name

    return parse


def list_of(parser: Parser, *, unique_by: Callable[[Any], Hashable] | None = lambda value: value) -> Parser:
    """A list whose items differ in what `unique_by` gives for them (None: they may be equal)."""

    def parse(node: yaml.Node, path: str, context: ParseContext) -> tuple[Any, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise InvalidValue("expected a list")
        lines: dict[Hashable, int] = {}
        values = []
        for number, child in enumerate(node.value):
            before = len(context.problems)
            value = context.parse_or_report(parser, child, f"{path}[{number}]")
            if len(context.problems) > before:
                continue
            identity = number if unique_by is None else unique_by(value)
            if identity in lines:
                message = f"given twice, first in line {lines[identity]}"
                context.add_problem(child, f"{path}[{number}]", message)
            lines.setdefault(identity, line_of(child))
            values.append(value)
        return tuple(values)

    return parse


def record(*fields: Field, check: Check | None = None) -> Parser:
    def parse(node: yaml.Node, path: str, context: ParseContext) -> dict[str, Any]:
        return parse_record(node, path, context, fields=fields, check=check)

    return parse


def list_of_records(key: str, list_parser: Parser) -> Parser:
    """A list of values as records with one key."""

    def parse(node: yaml.Node, path: str, context: ParseContext) -> tuple[dict[str, Any], ...]:
        return tuple({key: value} for value in list_parser(node, path, context))

    return parse


def without_disabled(list_parser: Parser) -> Parser:
    """A list of records without those that are `enabled: false`: their rows have no such column."""

    def parse(node: yaml.Node, path: str, context: ParseContext) -> tuple[dict[str, Any], ...]:
        return tuple(each for each in list_parser(node, path, context) if each["enabled"])

    return parse


def alias(node: yaml.Node, path: str, context: ParseContext) -> dict[str, Any]:
    """An alias; `prefix*` is stored as the prefix, with `wildcard`. It is unique over all models of the catalog."""
    pattern = text(validators.alias)(node, path, context)
    context.add_reference(node, path, section="aliases", name=pattern)
    return {"pattern": pattern.removesuffix("*"), "wildcard": pattern.endswith("*")}


def grant(node: yaml.Node, path: str, context: ParseContext) -> str:
    """A policy's grant. Its provider, model and host are resolved when the whole file has been parsed."""
    value = str(text(str)(node, path, context))
    if not 1 <= len(value) <= 800 or "\x00" in value:
        raise InvalidValue("expected provider, provider/model, provider/model@host, provider@host or @host")
    context.add_reference(node, path, section="grants", name=value)
    return value


def _scalar_value(node: yaml.Node, tags: tuple[str, ...], expected: str) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag not in tags:
        raise InvalidValue(expected)
    return str(node.value)


def _join_surrogates(value: str) -> str:
    """Join surrogate pairs: JSON writes characters beyond the basic plane as two escapes, which YAML keeps apart."""
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidValue("expected text without lone surrogates") from None
