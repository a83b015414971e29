"""Resolve the names by which a file refers to rows: in the file itself and, without --prune, in the database."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.catalog.cross_checks import cross_row_problems
from routing.catalog.problems import Problem, format_name
from routing.catalog.schema import KINDS
from routing.models import Alias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routing.catalog.fields.columns import Rows
    from routing.catalog.fields.records import NameReference, ParseContext
    from routing.catalog.parse import DesiredRow

_LABELS = {kind.section: kind.label for kind in KINDS}


@dataclass(slots=True)
class KnownNames:
    """`names`: by section. `providers`: by model. `aliases`: alias -> model, for models that the file does not hold."""

    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    providers: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)


def find_problems(
    desired_rows: list[DesiredRow], context: ParseContext, rows: Rows, *, with_database: bool
) -> list[Problem]:
    """All problems: those found while parsing, unresolved names, and rows that do not fit each other."""
    known = _known_names(desired_rows, rows, with_database=with_database)
    lines = {reference.path: reference.line for reference in context.references}
    return [
        *context.problems,
        *_reference_problems(context.references, known),
        *cross_row_problems(desired_rows, lines, with_database=with_database),
    ]


def _known_names(desired_rows: list[DesiredRow], rows: Rows, *, with_database: bool) -> KnownNames:
    known = KnownNames()
    if with_database:
        _add_database(known, rows, in_file={row.name for row in desired_rows if row.kind.section == "models"})
    for row in desired_rows:
        known.names[row.kind.section].add(row.name)
        if row.kind.section == "models":
            known.providers[row.name] = row.values["provider"]
    return known


def _reference_problems(references: list[NameReference], known: KnownNames) -> Iterator[Problem]:
    lines: dict[str, int] = {}
    for reference in references:
        if reference.section == "aliases":
            message = _alias_problem(reference, known, lines)
        elif reference.section == "grants":
            message = _grant_problem(reference.name, known)
        elif reference.name not in known.names[reference.section]:
            message = _unknown_name(reference.section, reference.name)
        else:
            continue
        if message:
            yield Problem(reference.line, f"{reference.path}: {message}")


def _unknown_name(section: str, name: str) -> str:
    return f"unknown {_LABELS[section]} {format_name(name)}: add it to {section}"


def _add_database(known: KnownNames, rows: Rows, *, in_file: set[str]) -> None:
    for section, named in rows.items():
        known.names[section].update(named)
    known.providers.update({name: model.provider.name for name, model in rows["models"].items()})
    for alias in Alias.objects.select_related("model").exclude(model__name__in=in_file):
        known.aliases[str(alias)] = alias.model.name


def _alias_problem(reference: NameReference, known: KnownNames, lines: dict[str, int]) -> str:
    if reference.name in known.aliases:
        return f"model {format_name(known.aliases[reference.name])} has the alias {format_name(reference.name)} already"
    if reference.name in lines:
        return f"alias {format_name(reference.name)} is given twice, first in line {lines[reference.name]}"
    lines[reference.name] = reference.line
    return ""


def _grant_problem(grant: str, known: KnownNames) -> str:
    """Empty if one way to split the grant gives existing names: a model's name may contain `/` and `@` itself."""
    problems = [_problem_of_parts(*parts, known=known) for parts in _possible_parts(grant)]
    if not problems:
        return "expected provider, provider/model, provider/model@host, provider@host or @host"
    return "" if "" in problems else problems[-1]


def _possible_parts(grant: str) -> Iterator[tuple[str | None, str | None, str | None]]:
    """Each way to split the grant into `(provider, model, host)`. The one without a host comes first, so that a model
    whose name contains `@` wins."""
    provider, slash, model = grant.partition("/")
    if slash and provider and model:
        yield provider, model, None
        name, at, host = model.rpartition("@")
        if at and name and host:
            yield provider, name, host
    elif not slash:
        provider, at, host = grant.rpartition("@")
        if not at:
            yield grant, None, None
        elif host:
            yield provider or None, None, host


def _problem_of_parts(provider: str | None, model: str | None, host: str | None, *, known: KnownNames) -> str:
    for section, name in (("providers", provider), ("models", model), ("hosts", host)):
        if name is not None and name not in known.names[section]:
            return _unknown_name(section, name)
    if model is not None and known.providers.get(model) != provider:
        return f"model {format_name(model)} is not of provider {format_name(provider or '')}"
    return ""
