from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.management.answering import AnsweringCommand, Problems
from usage.checking import compare, repair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.management.base import CommandParser


class Command(AnsweringCommand):
    help = "Compares the running totals of usage with the events; fails with a line for each that differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="set the totals that differ right")

    def answer(self, options: dict[str, Any]) -> Mapping[str, Any]:
        comparison = repair() if options["repair"] else compare()
        differing = [str(difference) for difference in comparison.differences]
        if differing and not options["repair"]:
            raise Problems(differing)
        return {"events": comparison.events, "totals": comparison.scopes, "repaired": differing}

    def told(self, answer: Mapping[str, Any]) -> str:
        repaired = [f"repaired {line}" for line in answer["repaired"]]
        return "\n".join(
            [*repaired, f"{answer['totals']} totals are what {answer['events']} events add up to"]
        )
