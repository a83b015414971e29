"""One change of a row, as `apply` reports it: names only, never a value."""

from __future__ import annotations

from dataclasses import dataclass

from routing.catalog.problems import format_name


@dataclass(frozen=True, slots=True)
class Change:
    """`action`: create, update (with the `fields` of the file that differ), disable or delete."""

    action: str
    kind: str
    name: str
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        change = f"{self.action} {self.kind} {format_name(self.name)}"
        return f"{change}: {', '.join(self.fields)}" if self.fields else change
