"""Commands that a script can rely on.

With --json there is exactly one line on stdout. On failure the exit code is 1 and there is one line on stderr, whatever
was wrong: an argument, a name, the database. The exit code says what was done, even if the output could not be written.
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

ModelT = TypeVar("ModelT", bound=models.Model)


class InputProblems(CommandError):  # noqa: N818 -- a list of problems
    """All problems of an input that was validated as a whole: one line each, or with --json all in one line."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class ReportedProblems(CommandError):  # noqa: N818 -- the command itself succeeded
    """A result that reports problems: it goes to stdout, and `line` to stderr with exit code 1."""

    def __init__(self, line: str, *, result: Mapping[str, Any]) -> None:
        super().__init__(line)
        self.result = result


class JsonCommand(BaseCommand):
    """A subclass implements `result()`, whose mapping is printed by --json, and `render_text()` for people.

    `result` raises CommandError with one sentence, or ReportedProblems where there is a result as well.
    """

    is_shown_once = False
    """The result cannot be shown again: if it cannot be written, the transaction is rolled back."""

    # System checks would print many lines; the use cases report the same problems in one.
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
        except ReportedProblems as problems:
            self._write_result(problems.result, as_json=options["json"])
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
        error = write_line(self.stdout, json.dumps(result) if as_json else self.render_text(result))
        if error is None:
            return
        if self.is_shown_once:
            raise CommandError(f"nothing was done: the answer could not be written: {error.strerror}")
        if not isinstance(error, BrokenPipeError):  # the reader has read enough
            write_line(self.stderr, f"done, but the answer could not be written: {error.strerror}")

    def _exit_with_error(self, error: CommandError) -> NoReturn:
        lines = error.lines if isinstance(error, InputProblems) else [str(error)]
        for line in lines:
            write_line(self.stderr, " ".join(line.split()))
        sys.exit(1)


def path_argument(text: str) -> Path:
    """An argument's type: a path whose name may be in any encoding."""
    return Path(os.fsdecode(text.encode(errors="surrogateescape")))


def _decode_utf8(argument: str) -> str:
    """Decode an argument as UTF-8, as names are stored, whatever encoding the locale says."""
    return os.fsencode(argument).decode(errors="surrogateescape")


def row_by_name(model: type[ModelT], name: str, *, field: str = "name") -> ModelT:
    """The row whose `field` is the argument's value. Raises CommandError if there is none."""
    row = (
        None
        if "\x00" in name or not _is_valid_unicode(name)
        else model._default_manager.filter(**{field: name}).first()
    )
    if row is None:
        raise CommandError(f"no {model._meta.verbose_name} {name!r}")
    return row


def _is_valid_unicode(name: str) -> bool:
    """Without the surrogates that stand for bytes which are no UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def parse_key_id(text: str) -> uuid.UUID:
    """The id of a relay key. Raises CommandError."""
    try:
        return uuid.UUID(text)
    except ValueError:
        raise CommandError("ID: expected a key's id, a UUID") from None
