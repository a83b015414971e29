"""Fields of a record in the file, and the reading of records: every problem is collected, none stops the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog.document import line_of
from routing.catalog.problems import Problem, Wrong, shown

if TYPE_CHECKING:
    from routing.catalog.columns import Column

NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class Mention:
    """A name by which the file refers to a row; `words` say where, for the problem if there is none."""

    section: str
    name: str
    line: int
    path: str


@dataclass(slots=True)
class Reading:
    """What one pass over a file has found: problems, and names still to be looked up."""

    problems: list[Problem] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)

    def wrong(self, node: yaml.Node, path: str, words: str) -> None:
        self.problems.append(Problem(line_of(node), f"{path}: {words}"))

    def mention(self, node: yaml.Node, path: str, *, section: str, name: str) -> None:
        self.mentions.append(Mention(section=section, name=name, line=line_of(node), path=path))

    def attempt(self, read: Reader, node: yaml.Node, path: str) -> Any:
        """The value, or None after noting what is wrong with it."""
        try:
            return read(node, path, self)
        except (Wrong, ValueError) as problem:
            self.wrong(node, path, str(problem))
            return None


Reader = Callable[[yaml.Node, str, Reading], Any]
Check = Callable[[dict[str, Any]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Field:
    """`to`: the key of the value, where the file's word for it is another. `column`: how it lies in a row."""

    name: str
    read: Reader
    required: bool = False
    default: Any = None
    to: str = ""
    column: Column | None = None

    @property
    def key(self) -> str:
        return self.to or self.name


def read_record(
    node: yaml.Node, path: str, reading: Reading, *, fields: tuple[Field, ...], check: Check | None = None
) -> dict[str, Any]:
    """The record's values by key, defaults for what is absent or null. Raises Wrong for what is no mapping."""
    given = read_mapping(node, path, reading, names={field.name for field in fields})
    before = len(reading.problems)
    record = {}
    for each in fields:
        value = given.get(each.name)
        if value is None and each.required:
            reading.wrong(node, path, f"{each.name} is missing")
        record[each.key] = (
            each.default if value is None else reading.attempt(each.read, value, f"{path}.{each.name}")
        )
    if check is not None and len(reading.problems) == before:
        for words in check(record):
            reading.wrong(node, path, words)
    return record


def read_mapping(node: yaml.Node, path: str, reading: Reading, *, names: set[str]) -> dict[str, yaml.Node]:
    """The mapping's nodes by name, without those that are null. Raises Wrong for what is no mapping."""
    if not isinstance(node, yaml.MappingNode):
        raise Wrong(f"expected a mapping with {', '.join(sorted(names))}")
    found: dict[str, yaml.Node] = {}
    for key, value in node.value:
        word = key.value if isinstance(key, yaml.ScalarNode) else "?"
        if word not in names:
            reading.wrong(
                key, path, f"unknown field {shown(word[:60])}: known are {', '.join(sorted(names))}"
            )
        elif word in found:
            reading.wrong(key, path, f"{word} is given twice")
        else:
            found[word] = value
    return {word: value for word, value in found.items() if value.tag != NULL}
