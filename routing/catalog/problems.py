"""The problems of a catalog file, each with its line and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """`line` counts from 1; 0 means the file as a whole. `message` never contains a value that could be a secret."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


class CatalogRejected(Exception):  # noqa: N818 -- a decision about the file, not a fault; nothing was changed
    """Carries all problems, without duplicates, in the order of their lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("; ".join(map(str, self.problems)))


class InvalidValue(Exception):  # noqa: N818 -- becomes a Problem where line and path are known
    """A parser's message for a value that it does not take."""


def format_name(text: str) -> str:
    """A name for a line of output: escaped and quoted where it is not printable or begins or ends with a blank."""
    return text if text.isprintable() and text == text.strip() else ascii(text)
