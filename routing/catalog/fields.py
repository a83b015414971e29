"""Fields of a record in the file, and the reading of records: every problem is collected, none stops the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog.document import line_of
from routing.catalog.problems import InvalidValue, Problem, format_name

if TYPE_CHECKING:
    from routing.catalog.columns import Column

NULL_TAG = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class NameReference:
    """A name by which the file refers to a row; `words` say where, for the problem if there is none."""

    section: str
    name: str
    line: int
    path: str


@dataclass(slots=True)
class ParseContext:
    """What one pass over a file has found: problems, and names still to be looked up."""

    problems: list[Problem] = field(default_factory=list)
    references: list[NameReference] = field(default_factory=list)

    def add_problem(self, node: yaml.Node, path: str, message: str) -> None:
        self.problems.append(Problem(line_of(node), f"{path}: {message}"))

    def add_reference(self, node: yaml.Node, path: str, *, section: str, name: str) -> None:
        self.references.append(NameReference(section=section, name=name, line=line_of(node), path=path))

    def parse_or_report(self, parser: Parser, node: yaml.Node, path: str) -> Any:
        """The value, or None after noting what is wrong with it."""
        try:
            return parser(node, path, self)
        except (InvalidValue, ValueError) as problem:
            self.add_problem(node, path, str(problem))
            return None


Parser = Callable[[yaml.Node, str, ParseContext], Any]
Check = Callable[[dict[str, Any]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Field:
    """`to`: the key of the value, where the file's word for it is another. `column`: how it lies in a row."""

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
    """The record's values by key, defaults for what is absent or null. Raises Wrong for what is no mapping."""
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
        for words in check(record):
            context.add_problem(node, path, words)
    return record


def parse_mapping(
    node: yaml.Node, path: str, context: ParseContext, *, names: set[str]
) -> dict[str, yaml.Node]:
    """The mapping's nodes by name, without those that are null. Raises Wrong for what is no mapping."""
    if not isinstance(node, yaml.MappingNode):
        raise InvalidValue(f"expected a mapping with {', '.join(sorted(names))}")
    found: dict[str, yaml.Node] = {}
    for key, value in node.value:
        word = key.value if isinstance(key, yaml.ScalarNode) else "?"
        if word not in names:
            context.add_problem(
                key, path, f"unknown field {format_name(word[:60])}: known are {', '.join(sorted(names))}"
            )
        elif word in found:
            context.add_problem(key, path, f"{word} is given twice")
        else:
            found[word] = value
    return {word: value for word, value in found.items() if value.tag != NULL_TAG}
