from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from relaybatch.db.clock import database_now
from routing.credentials.relay_keys import MAX_GRACE_SECONDS, RelayKeyError, rotate_key
from routing.management.issued_key import issued_key_result, render_issued_key
from routing.management.json_command import JsonCommand, parse_key_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.management.base import CommandParser


class Command(JsonCommand):
    help = "Give a relay key a new value and show it, this once. The previous value works during the grace period."
    is_shown_once = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID")
        parser.add_argument("--grace-seconds", metavar="N", type=int, default=0)

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        grace = options["grace_seconds"]
        if not 0 <= grace <= MAX_GRACE_SECONDS:
            raise CommandError(f"--grace-seconds: expected 0 to {MAX_GRACE_SECONDS}")
        try:
            return issued_key_result(
                rotate_key(key_id=parse_key_id(options["id"]), grace_seconds=grace, now=database_now())
            )
        except RelayKeyError as error:
            raise CommandError(str(error)) from error

    def render_text(self, result: Mapping[str, Any]) -> str:
        return render_issued_key(result)
