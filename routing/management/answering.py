"""Commands that a script can rely on: with --json exactly one line on stdout; on failure exit code 1 and one
line on stderr, whatever was wrong: an argument, a name, the database.
"""

from __future__ import annotations

import json
import sys
import uuid
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, models

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.management.base import CommandParser

M = TypeVar("M", bound=models.Model)


class Problems(CommandError):  # noqa: N818 -- they are the lines, and the error
    """One for each problem of something that was read as a whole: a line each for people, with --json all in one."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class Found(CommandError):  # noqa: N818 -- it is no error of the command's
    """The answer is there and goes to stdout, but says that something is wrong: one line of that on stderr."""

    def __init__(self, line: str, *, answer: Mapping[str, Any]) -> None:
        super().__init__(line)
        self.answer = answer


class AnsweringCommand(BaseCommand):
    """A subclass gives `answer()`: its mapping is the line of --json, and `told()` says it to people.

    `answer` raises CommandError with one sentence, Found where there is an answer as well.
    """

    # The checks print many lines; what they would find, the use case finds in its own words.
    requires_system_checks: list[str] = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        # A wrong argument then raises CommandError; argparse would print the usage and exit with 2.
        parser.called_from_command_line = False
        parser.add_argument("--json", action="store_true", help="one line of JSON on stdout")
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            super().run_from_argv(argv)
        except CommandError as error:
            self._leave(error)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            if not getattr(self, "_called_from_command_line", False):
                raise
            self._leave(error)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 -- Django's signature
        try:
            answer = self.answer(options)
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(f"the database refused: {str(error).partition(chr(10))[0]}") from error
        except Found as found:
            self._say(found.answer, as_json=options["json"])
            raise
        except Problems as problems:
            if options["json"]:
                raise CommandError("; ".join(problems.lines)) from problems
            raise
        self._say(answer, as_json=options["json"])

    def answer(self, options: dict[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError

    def told(self, answer: Mapping[str, Any]) -> str:
        return "\n".join(f"{name}: {value}" for name, value in answer.items())

    def _say(self, answer: Mapping[str, Any], *, as_json: bool) -> None:
        self.stdout.write(json.dumps(answer) if as_json else self.told(answer))

    def _leave(self, error: CommandError) -> NoReturn:
        lines = error.lines if isinstance(error, Problems) else [str(error)]
        for line in lines:
            self.stderr.write(" ".join(line.split()))
        sys.exit(1)


def named(model: type[M], name: str, *, field: str = "name") -> M:
    """The row of this name, as a command's argument gives it. Raises CommandError."""
    row = None if "\x00" in name else model._default_manager.filter(**{field: name}).first()
    if row is None:
        raise CommandError(f"no {model._meta.verbose_name} {name!r}")
    return row


def key_id(text: str) -> uuid.UUID:
    """Raises CommandError."""
    try:
        return uuid.UUID(text)
    except ValueError:
        raise CommandError("ID: expected a key's id, a UUID") from None
