"""`manage.py move_payloads`: moves payloads from the fallback to the store, while the deployment serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from batches.payloads.errors import PayloadError
from batches.payloads.moving.move import PayloadMove
from batches.payloads.moving.prepare import NotMovable, open_stores_to_move, prepare_fallback
from routing.management.json_command import JsonCommand, ReportedProblems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.management.base import CommandParser

MAX_NAMED = 3


class Command(JsonCommand):
    help = "Move all payloads from RELAY_BATCH_PAYLOAD_FALLBACK_URL to the payload store. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--prepare", action="store_true", help="mark the fallback as this deployment's")

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        try:
            return {"prepared": prepare_fallback()} if options["prepare"] else self._move()
        except (NotMovable, PayloadError) as error:
            raise CommandError(str(error)) from error

    def render_text(self, result: Mapping[str, Any]) -> str:
        if "prepared" in result:
            return "the fallback is prepared" if result["prepared"] else "the fallback was prepared before"
        return f"moved {result['folders']} folders: {result['objects']} objects, {result['bytes']} bytes"

    def _move(self) -> Mapping[str, Any]:
        main, fallback, marker = open_stores_to_move()
        move = PayloadMove(main=main, fallback=fallback, marker=marker)
        try:
            move.run()
        except PayloadError as error:
            move.report.problems.append(str(error))
        report = move.report
        result = {"folders": report.folders, "objects": report.objects, "bytes": report.size_bytes}
        result["not_moved"] = len(report.problems)
        if report.problems:
            raise ReportedProblems(_summary_line(report.problems), result=result)
        return result


def _summary_line(problems: list[str]) -> str:
    named = problems[:MAX_NAMED]
    more = [f"and {len(problems) - MAX_NAMED} more"] if len(problems) > MAX_NAMED else []
    return f"not everything was moved: {' | '.join([*named, *more])}"
