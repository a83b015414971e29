"""What no row shows by itself: whether a model's upstream name fits the base URL of a host that it is bound to.

The file may change either one and leave the other to the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.catalog.problems import Problem, shown
from routing.models import Binding, Host
from routing.upstream_url import check_name_fits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from routing.catalog.reading import Wanted


@dataclass(frozen=True, slots=True)
class Place:
    """Of a row or a part of one in the file."""

    line: int
    path: str

    def problem(self, words: str) -> Problem:
        return Problem(self.line, f"{self.path}: {words}")


@dataclass(frozen=True, slots=True)
class _Host:
    """`place`: None for a row that the file leaves as it is."""

    base_url: str
    place: Place | None


def problems_across(wanted: list[Wanted], lines: dict[str, int], *, with_database: bool) -> Iterator[Problem]:
    """`lines`: of the names that the file refers to, by path. Rows that have problems of their own are passed over."""
    hosts = _hosts(wanted, with_database=with_database)
    for name, host, upstream_name, place in _bindings(wanted, lines, with_database=with_database):
        found = hosts.get(host)
        at = place or (found.place if found else None)
        if found is None or at is None:
            continue
        try:
            check_name_fits(found.base_url, upstream_name=upstream_name)
        except ValueError as problem:
            yield at.problem(f"model {shown(name)} on host {shown(host)}: {problem}")


def _hosts(wanted: list[Wanted], *, with_database: bool) -> dict[str, _Host]:
    stored = Host.objects.values_list("name", "base_url") if with_database else ()
    hosts = {name: _Host(base_url, None) for name, base_url in stored}
    for row in _of(wanted, "hosts"):
        if row.values["base_url"] is not None:
            hosts[row.name] = _Host(row.values["base_url"], Place(row.line, row.path))
    return hosts


def _bindings(
    wanted: list[Wanted], lines: dict[str, int], *, with_database: bool
) -> Iterator[tuple[str, str, str, Place | None]]:
    """Model, host, upstream name, and the place of what the file holds."""
    models = list(_of(wanted, "models"))
    for row in models:
        for number, binding in enumerate(row.values["bindings"] or ()):
            path = f"{row.path}.bindings[{number}]"
            place = Place(lines.get(f"{path}.host", row.line), path)
            yield row.name, binding["host"], binding["upstream_name"] or row.name, place
    if with_database:
        others = Binding.objects.exclude(model__name__in=[row.name for row in models])
        for name, host, own in others.values_list("model__name", "host__name", "upstream_name"):
            yield name, host, own or name, None


def _of(wanted: Iterable[Wanted], section: str) -> Iterator[Any]:
    return (row for row in wanted if row.kind.section == section)
