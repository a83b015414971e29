"""From a node to a value, by the kind of value. A reader raises Wrong or ValueError with the form expected."""

# ruff: noqa: ARG001 -- all readers share one signature

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog import validators
from routing.catalog.document import line_of
from routing.catalog.fields import Check, Field, Reader, Reading, read_record
from routing.catalog.problems import Wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_TEXT = "tag:yaml.org,2002:str"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def text(form: Callable[[str], Any]) -> Reader:
    """Text in the given form. What YAML takes for a number, a date or a truth value must be quoted."""

    def read(node: yaml.Node, path: str, reading: Reading) -> Any:
        return form(_joined(_scalar(node, (_TEXT,), "expected text: put it in quotes")))

    return read


def amount(node: yaml.Node, path: str, reading: Reading) -> int:
    """Money, from the digits as written: a float would have rounded them."""
    return validators.nanos(_scalar(node, (_TEXT, *_NUMBERS), 'expected an amount, as "2.50"'))


def whole(*, minimum: int, maximum: int) -> Reader:
    def read(node: yaml.Node, path: str, reading: Reading) -> int:
        form = f"expected a whole number from {minimum} to {maximum}"
        return validators.whole(_scalar(node, _NUMBERS, form), minimum=minimum, maximum=maximum)

    return read


def truth(node: yaml.Node, path: str, reading: Reading) -> bool:
    return _TRUTH[_scalar(node, ("tag:yaml.org,2002:bool",), "expected true or false").lower()]


def choice(options: Iterable[str]) -> Reader:
    known = tuple(options)

    def read(node: yaml.Node, path: str, reading: Reading) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.value not in known:
            raise Wrong(f"expected one of {', '.join(known)}")
        return str(node.value)

    return read


def reference(section: str) -> Reader:
    """The name of a row; whether there is one is looked up when the whole file has been read."""

    def read(node: yaml.Node, path: str, reading: Reading) -> str:
        name = _joined(_scalar(node, (_TEXT,), "expected a name: put it in quotes"))
        reading.mention(node, path, section=section, name=name)
        return name

    return read


def listing(item: Reader, *, once: Callable[[Any], Hashable] | None = lambda value: value) -> Reader:
    """A list, whose items differ in what `once` makes of them (None: they may be equal)."""

    def read(node: yaml.Node, path: str, reading: Reading) -> tuple[Any, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise Wrong("expected a list")
        lines: dict[Hashable, int] = {}
        values = []
        for number, child in enumerate(node.value):
            before = len(reading.problems)
            value = reading.attempt(item, child, f"{path}[{number}]")
            if len(reading.problems) > before:
                continue
            mark = number if once is None else once(value)
            if mark in lines:
                reading.wrong(child, f"{path}[{number}]", f"given twice, first in line {lines[mark]}")
            lines.setdefault(mark, line_of(child))
            values.append(value)
        return tuple(values)

    return read


def record(*fields: Field, check: Check | None = None) -> Reader:
    def read(node: yaml.Node, path: str, reading: Reading) -> dict[str, Any]:
        return read_record(node, path, reading, fields=fields, check=check)

    return read


def each_as(key: str, read_list: Reader) -> Reader:
    """A list of plain values as records with that one key."""

    def read(node: yaml.Node, path: str, reading: Reading) -> tuple[dict[str, Any], ...]:
        return tuple({key: value} for value in read_list(node, path, reading))

    return read


def without_disabled(read_list: Reader) -> Reader:
    """Records that the rows have no switch for: one that is `enabled: false` is left out."""

    def read(node: yaml.Node, path: str, reading: Reading) -> tuple[dict[str, Any], ...]:
        return tuple(each for each in read_list(node, path, reading) if each["enabled"])

    return read


def alias(node: yaml.Node, path: str, reading: Reading) -> dict[str, Any]:
    """`prefix*` is stored as the prefix. An alias belongs to one model of the whole catalog."""
    pattern = text(validators.alias)(node, path, reading)
    reading.mention(node, path, section="aliases", name=pattern)
    return {"pattern": pattern.removesuffix("*"), "wildcard": pattern.endswith("*")}


def grant(node: yaml.Node, path: str, reading: Reading) -> str:
    words = text(str)(node, path, reading)
    if not 1 <= len(words) <= 800 or "\x00" in words:
        raise Wrong("expected provider, provider/model, provider/model@host, provider@host or @host")
    reading.mention(node, path, section="grants", name=words)
    return str(words)


def _scalar(node: yaml.Node, tags: tuple[str, ...], words: str) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag not in tags:
        raise Wrong(words)
    return str(node.value)


def _joined(value: str) -> str:
    """JSON writes characters beyond the basic plane as two escapes, which YAML leaves apart."""
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Wrong("expected text without lone surrogates") from None
