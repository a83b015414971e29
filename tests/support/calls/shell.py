"""Run management commands as a script does: arguments in; exit code, stdout and stderr out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import ManagementUtility


class Shell:
    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def json_result(self, *arguments: str) -> dict[str, Any]:
        """The result that the command prints with --json. It must print nothing else."""
        code, out, err = self.run(*arguments, "--json")
        assert (code, err, out.count("\n")) == (0, "", 1)
        result: dict[str, Any] = json.loads(out)
        return result

    def error_line(self, *arguments: str) -> str:
        """The one line on stderr with which the command fails."""
        code, out, err = self.run(*arguments, "--json")
        assert (code, out, err.count("\n")) == (1, "", 1)
        return err.strip()

    def run(self, *arguments: str) -> tuple[int, str, str]:
        self._capfd.readouterr()
        code = 0
        try:
            ManagementUtility(["manage.py", *arguments]).execute()
        except SystemExit as left:
            code = int(left.code or 0)
        printed = self._capfd.readouterr()
        return code, printed.out, printed.err


@pytest.fixture
def shell(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    # A command closes all connections at its end, and with them the test's transaction.
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)
    return Shell(capfd)
