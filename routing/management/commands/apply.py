from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaybatch.output import write_line
from routing.catalog.apply import apply_catalog
from routing.catalog.changes import Change
from routing.catalog.problems import CatalogRejected
from routing.management.json_command import InputProblems, JsonCommand, path_argument

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from django.core.management.base import CommandParser

    from routing.catalog.problems import Problem


class Command(JsonCommand):
    help = "Make the catalog what a YAML file (or a .json file) says, and print a line for each change."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=path_argument)
        parser.add_argument("--dry-run", action="store_true", help="print the changes, and make none")
        parser.add_argument("--prune", action="store_true", help="delete rows that the file does not hold")

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        path, dry_run = options["file"], options["dry_run"]
        try:
            changes = apply_catalog(path, dry_run=dry_run, prune=options["prune"], warn=self._warn)
        except CatalogRejected as error:
            raise InputProblems([_format_problem(path, problem) for problem in error.problems]) from error
        return {
            "dry_run": dry_run,
            "changes": [
                {"action": each.action, "kind": each.kind, "name": each.name, "fields": list(each.fields)}
                for each in changes
            ],
        }

    def _warn(self, message: str) -> None:
        # Written after the change and before the result; a warning that cannot be written stops nothing.
        write_line(self.stderr, f"warning: {message}")

    def render_text(self, result: Mapping[str, Any]) -> str:
        lines = [str(Change(**{**each, "fields": tuple(each["fields"])})) for each in result["changes"]]
        if not lines:
            return "nothing to change"
        return "\n".join([*lines, "dry run: nothing was changed"] if result["dry_run"] else lines)


def _format_problem(path: Path, problem: Problem) -> str:
    return f"{path}:{problem.line}: {problem.message}" if problem.line else f"{path}: {problem.message}"
