"""A file's rows as wanted, in the order of writing, and all problems that the file alone shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog.document import line_of
from routing.catalog.fields import Reading, read_mapping
from routing.catalog.parsers import record
from routing.catalog.problems import shown
from routing.catalog.schema import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Wanted:
    kind: Kind
    name: str
    values: dict[str, Any]
    line: int
    path: str


def read_rows(document: yaml.MappingNode, reading: Reading) -> list[Wanted]:
    """What is wrong is noted in `reading`; the rows are of use only when nothing was."""
    sections = read_mapping(document, "the file", reading, names={kind.section for kind in KINDS})
    return [
        wanted
        for kind in KINDS
        if kind.section in sections
        for wanted in _section(kind, sections[kind.section], reading)
    ]


def _section(kind: Kind, node: yaml.Node, reading: Reading) -> Iterator[Wanted]:
    if not isinstance(node, yaml.SequenceNode):
        reading.wrong(node, kind.section, "expected a list")
        return
    lines: dict[str, int] = {}
    for number, child in enumerate(node.value):
        path = f"{kind.section}[{number}]"
        values = reading.attempt(record(*kind.all_fields, check=kind.check), child, path)
        name = values.pop("name") if values else None
        if name is None:
            continue
        if name in lines:
            words = f"{kind.word} {shown(name)} is given twice, first in line {lines[name]}"
            reading.wrong(child, path, words)
        lines.setdefault(name, line_of(child))
        yield Wanted(kind=kind, name=name, values=values, line=line_of(child), path=path)
