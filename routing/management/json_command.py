"""Commands that a script can rely on: with --json exactly one line on stdout; on failure exit code 1 and one
line on stderr, whatever was wrong: an argument, a name, the database. The exit code says what was done, also where
the words of it could not be written.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, models, transaction

from relaybatch.output import write_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.management.base import CommandParser

M = TypeVar("M", bound=models.Model)


class InputProblems(CommandError):  # noqa: N818 -- they are the lines, and the error
    """One for each problem of something that was read as a whole: a line each for people, with --json all in one."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class ReportedProblems(CommandError):  # noqa: N818 -- it is no error of the command's
    """The answer is there and goes to stdout, but says that something is wrong: one line of that on stderr."""

    def __init__(self, line: str, *, result: Mapping[str, Any]) -> None:
        super().__init__(line)
        self.result = result


class JsonCommand(BaseCommand):
    """A subclass gives `answer()`: its mapping is the line of --json, and `told()` says it to people.

    `answer` raises CommandError with one sentence, Found where there is an answer as well.
    """

    is_shown_once = False
    """The answer can be had this once: where it cannot be written, nothing is done."""

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
            super().run_from_argv([*argv[:2], *map(_decode_utf8, argv[2:])])
        except CommandError as error:
            self._exit_with_error(error)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            if not getattr(self, "_called_from_command_line", False):
                raise
            self._exit_with_error(error)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 -- Django's signature
        try:
            with transaction.atomic() if self.is_shown_once else contextlib.nullcontext():
                self._write_result(self.result(options), as_json=options["json"])
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(f"the database refused: {str(error).partition(chr(10))[0]}") from error
        except ReportedProblems as found:
            self._write_result(found.result, as_json=options["json"])
            raise
        except InputProblems as problems:
            if options["json"]:
                raise CommandError("; ".join(problems.lines)) from problems
            raise

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError

    def render_text(self, result: Mapping[str, Any]) -> str:
        return "\n".join(f"{name}: {value}" for name, value in result.items())

    def _write_result(self, result: Mapping[str, Any], *, as_json: bool) -> None:
        problem = write_line(self.stdout, json.dumps(result) if as_json else self.render_text(result))
        if problem is None:
            return
        if self.is_shown_once:
            raise CommandError(f"nothing was done: the answer could not be written: {problem.strerror}")
        if not isinstance(problem, BrokenPipeError):  # a reader that has read enough
            write_line(self.stderr, f"done, but the answer could not be written: {problem.strerror}")

    def _exit_with_error(self, error: CommandError) -> NoReturn:
        lines = error.lines if isinstance(error, InputProblems) else [str(error)]
        for line in lines:
            write_line(self.stderr, " ".join(line.split()))
        sys.exit(1)


def path_argument(text: str) -> Path:
    """An argument's type; of a file in any encoding."""
    return Path(os.fsdecode(text.encode(errors="surrogateescape")))


def _decode_utf8(argument: str) -> str:
    """Names are stored as UTF-8, whatever the terminal's encoding is said to be."""
    return os.fsencode(argument).decode(errors="surrogateescape")


def row_by_name(model: type[M], name: str, *, field: str = "name") -> M:
    """The row of this name, as a command's argument gives it. Raises CommandError."""
    row = (
        None
        if "\x00" in name or not _is_valid_unicode(name)
        else model._default_manager.filter(**{field: name}).first()
    )
    if row is None:
        raise CommandError(f"no {model._meta.verbose_name} {name!r}")
    return row


def _is_valid_unicode(name: str) -> bool:
    """And not bytes of another encoding than UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def parse_key_id(text: str) -> uuid.UUID:
    """Raises CommandError."""
    try:
        return uuid.UUID(text)
    except ValueError:
        raise CommandError("ID: expected a key's id, a UUID") from None
