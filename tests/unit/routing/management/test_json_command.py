"""The base class of commands that scripts rely on: one line on stdout, or one on stderr and exit code 1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management.base import CommandError
from django.db import DatabaseError

from routing.management.json_command import InputProblems, JsonCommand, ReportedProblems, parse_key_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.management.base import CommandParser


class Command(JsonCommand):
    """Returns the number, or raises the error that was set."""

    error: Exception | None = None

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("number", type=int)

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        if self.error is not None:
            raise self.error
        return {"number": options["number"], "doubled": 2 * options["number"]}


@pytest.fixture(autouse=True)
def open_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    # A command closes all connections at its end, also those of other tests' transactions.
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)


def run(
    capsys: pytest.CaptureFixture[str], *arguments: str, error: Exception | None = None
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    command = Command()
    command.error = error
    code = 0
    try:
        command.run_from_argv(["manage.py", "double", *arguments])
    except SystemExit as left:
        code = int(left.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_result_is_a_line_for_each_value_or_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "4") == (0, "number: 4\ndoubled: 8\n", "")
    code, out, err = run(capsys, "4", "--json")
    assert (code, json.loads(out), out.count("\n"), err) == (0, {"number": 4, "doubled": 8}, 1, "")


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CommandError("no such number"), "no such number\n"),
        (CommandError("two\nlines"), "two lines\n"),
        (DatabaseError("too large\nDETAIL: secret"), "the database refused: too large\n"),
    ],
)
def test_an_error_is_one_line_on_stderr(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], error: Exception, line: str
) -> None:
    assert run(capsys, "4", *options, error=error) == (1, "", line)


@pytest.mark.parametrize("arguments", [(), ("x",), ("4", "--other"), ("4", "5")])
def test_a_wrong_argument_is_one_line_without_a_usage_text(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "usage" not in err


def test_problems_of_an_input_are_a_line_each_or_one_line_with_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = InputProblems(["one", "two"])
    assert run(capsys, "4", error=error) == (1, "", "one\ntwo\n")
    assert run(capsys, "4", "--json", error=error) == (1, "", "one; two\n")


def test_a_result_that_reports_problems_is_printed_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    error = ReportedProblems("one differs", result={"differing": 1})
    assert run(capsys, "4", "--json", error=error) == (1, '{"differing": 1}\n', "one differs\n")


def test_a_key_id_is_a_uuid() -> None:
    assert str(parse_key_id("0190A5F2-0000-7000-8000-000000000000")) == "0190a5f2-0000-7000-8000-000000000000"
    with pytest.raises(CommandError, match="expected a key's id, a UUID"):
        parse_key_id("sk-rb-x")
