from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.management.json_command import AnsweringCommand, Found
from usage.reconcile import compare, repair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.core.management.base import CommandParser

    from usage.reconcile import Difference

MOST_NAMED = 3


class Command(AnsweringCommand):
    help = "Compares the running totals of usage with the events; fails when one differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="set the totals that differ right")

    def answer(self, options: dict[str, Any]) -> Mapping[str, Any]:
        comparison = repair() if options["repair"] else compare()
        self._differences = comparison.differences
        found = len(comparison.differences)
        answer = {
            "events": comparison.events,
            "totals": comparison.scopes,
            "differing": 0 if options["repair"] else found,
            "repaired": found if options["repair"] else 0,
        }
        if answer["differing"]:
            raise Found(_line(comparison.differences), answer=answer)
        return answer

    def told(self, answer: Mapping[str, Any]) -> str:
        """A line for each difference."""
        if answer["differing"]:
            return "\n".join(map(str, self._differences))
        repaired = [f"repaired {difference}" for difference in self._differences]
        return "\n".join(
            [*repaired, f"{answer['totals']} totals are what {answer['events']} events add up to"]
        )


def _line(differences: Sequence[Difference]) -> str:
    named = [str(difference) for difference in differences[:MOST_NAMED]]
    if len(differences) > MOST_NAMED:
        named.append(f"and {len(differences) - MOST_NAMED} more")
    verb = "total differs" if len(differences) == 1 else "totals differ"
    return f"{len(differences)} {verb}: {' | '.join(named)}"
