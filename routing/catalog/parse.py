"""A file's rows as it wants them, in the order of writing, and every problem that the file alone reveals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog.document import line_of
from routing.catalog.fields.parsers import record
from routing.catalog.fields.records import ParseContext, parse_mapping
from routing.catalog.problems import format_name
from routing.catalog.schema import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routing.catalog.fields.kinds import Kind


@dataclass(frozen=True, slots=True)
class DesiredRow:
    """A row as the file describes it. `values`: by the keys of the kind's fields, without the name."""

    kind: Kind
    name: str
    values: dict[str, Any]
    line: int
    path: str


def parse_rows(document: yaml.MappingNode, context: ParseContext) -> list[DesiredRow]:
    """Add all problems to `context`; the rows are valid only if there is none."""
    sections = parse_mapping(document, "the file", context, names={kind.section for kind in KINDS})
    return [
        row
        for kind in KINDS
        if kind.section in sections
        for row in _parse_section(kind, sections[kind.section], context)
    ]


def _parse_section(kind: Kind, node: yaml.Node, context: ParseContext) -> Iterator[DesiredRow]:
    if not isinstance(node, yaml.SequenceNode):
        context.add_problem(node, kind.section, "expected a list")
        return
    lines: dict[str, int] = {}
    for number, child in enumerate(node.value):
        path = f"{kind.section}[{number}]"
        values = context.parse_or_report(record(*kind.all_fields, check=kind.check), child, path)
        name = values.pop("name") if values else None
        if name is None:
            continue
        if name in lines:
            message = f"{kind.label} {format_name(name)} is given twice, first in line {lines[name]}"
            context.add_problem(child, path, message)
        lines.setdefault(name, line_of(child))
        yield DesiredRow(kind=kind, name=name, values=values, line=line_of(child), path=path)
