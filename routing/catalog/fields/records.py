"""The fields of a record, and the parsing of records: every problem is collected, and none stops the parsing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog.document import line_of
from routing.catalog.problems import InvalidValue, Problem, format_name

if TYPE_CHECKING:
    from routing.catalog.fields.columns import Column

NULL_TAG = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class NameReference:
    """A name by which the file refers to a row. `line` and `path` say where, for a problem if there is no such row."""

    section: str
    name: str
    line: int
    path: str


@dataclass(slots=True)
class ParseContext:
    """What the parsing of one file has collected: problems, and references that are resolved at its end."""

    problems: list[Problem] = field(default_factory=list)
    references: list[NameReference] = field(default_factory=list)

    def add_problem(self, node: yaml.Node, path: str, message: str) -> None:
        self.problems.append(Problem(line_of(node), f"{path}: {message}"))

    def add_reference(self, node: yaml.Node, path: str, *, section: str, name: str) -> None:
        self.references.append(NameReference(section=section, name=name, line=line_of(node), path=path))

    def parse_or_report(self, parser: Parser, node: yaml.Node, path: str) -> Any:
        """Return the value, or add a problem and return None."""
        try:
            return parser(node, path, self)
        except (InvalidValue, ValueError) as error:
            self.add_problem(node, path, str(error))
            return None


# Takes a node, its path in the file and the context. Raises InvalidValue or ValueError with what was expected.
Parser = Callable[[yaml.Node, str, ParseContext], Any]
# Takes a record's values; gives a message for each problem.
Check = Callable[[dict[str, Any]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Field:
    """`value_key`: the key of the parsed value, where it is not `name`. `column`: how the value is stored in a row."""

    name: str
    parser: Parser
    required: bool = False
    default: Any = None
    value_key: str = ""
    column: Column | None = None

    @property
    def key(self) -> str:
        return self.value_key or self.name


def parse_record(
    node: yaml.Node,
    path: str,
    context: ParseContext,
    *,
    fields: tuple[Field, ...],
    check: Check | None = None,
) -> dict[str, Any]:
    """The record's values by key, with defaults for fields that are absent or null.

    `check` runs when the fields themselves have no problem. Raises InvalidValue if the node is no mapping.
    """
    given = parse_mapping(node, path, context, names={field.name for field in fields})
    before = len(context.problems)
    record = {}
    for each in fields:
        value = given.get(each.name)
        if value is None and each.required:
            context.add_problem(node, path, f"{each.name} is missing")
        record[each.key] = (
            each.default
            if value is None
            else context.parse_or_report(each.parser, value, f"{path}.{each.name}")
        )
    if check is not None and len(context.problems) == before:
        for message in check(record):
            context.add_problem(node, path, message)
    return record


def parse_mapping(
    node: yaml.Node, path: str, context: ParseContext, *, names: set[str]
) -> dict[str, yaml.Node]:
    """The mapping's nodes by name, without nulls. Raises InvalidValue if the node is no mapping."""
    if not isinstance(node, yaml.MappingNode):
        raise InvalidValue(f"expected a mapping with {', '.join(sorted(names))}")
    found: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        if name not in names:
            context.add_problem(
                key, path, f"unknown field {format_name(name[:60])}: known are {', '.join(sorted(names))}"
            )
        elif name in found:
            context.add_problem(key, path, f"{name} is given twice")
        else:
            found[name] = value
    return {name: value for name, value in found.items() if value.tag != NULL_TAG}
