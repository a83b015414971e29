from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.management.json_command import JsonCommand, ReportedProblems
from usage.reconcile import compare, repair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.core.management.base import CommandParser

    from usage.reconcile import Difference

MAX_NAMED = 3


class Command(JsonCommand):
    help = "Compare the running totals of usage with the events; fail when one differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="set the totals that differ right")

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        comparison = repair() if options["repair"] else compare()
        self._differences = comparison.differences
        found = len(comparison.differences)
        result = {
            "events": comparison.events,
            "totals": comparison.scopes,
            "differing": 0 if options["repair"] else found,
            "repaired": found if options["repair"] else 0,
        }
        if result["differing"]:
            raise ReportedProblems(_summary_line(comparison.differences), result=result)
        return result

    def render_text(self, result: Mapping[str, Any]) -> str:
        """A line for each difference."""
        if result["differing"]:
            return "\n".join(map(str, self._differences))
        repaired = [f"repaired {difference}" for difference in self._differences]
        return "\n".join(
            [*repaired, f"{result['totals']} totals are what {result['events']} events add up to"]
        )


def _summary_line(differences: Sequence[Difference]) -> str:
    named = [str(difference) for difference in differences[:MAX_NAMED]]
    if len(differences) > MAX_NAMED:
        named.append(f"and {len(differences) - MAX_NAMED} more")
    verb = "total differs" if len(differences) == 1 else "totals differ"
    return f"{len(differences)} {verb}: {' | '.join(named)}"
