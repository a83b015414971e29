"""What is wrong with a catalog file: each problem with its line and the mend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """`line` counts from 1; 0 = of the file as a whole. `words` never hold a value that could be a secret."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


class CatalogRejected(Exception):  # noqa: N818 -- nothing was changed; the problems say why
    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("; ".join(map(str, self.problems)))


class InvalidValue(Exception):  # noqa: N818 -- carries one problem's words up to the list that collects them
    pass


def format_name(text: str) -> str:
    """A name as it may stand in one line of output: quoted when it could be mistaken for something else."""
    return text if text.isprintable() and text == text.strip() else ascii(text)
