from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from relaybatch.db.clock import database_now
from routing.credentials.relay_keys import create_key
from routing.durations import parse_duration
from routing.management.issued_key import issued_key_result, render_issued_key
from routing.management.json_command import JsonCommand, row_by_name
from routing.models import Policy, ServiceAccount, User

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from django.core.management.base import CommandParser


class Command(JsonCommand):
    help = "Create a relay key and show its value, this once."
    is_shown_once = True

    def add_arguments(self, parser: CommandParser) -> None:
        principal = parser.add_mutually_exclusive_group(required=True)
        principal.add_argument("--service-account", metavar="NAME")
        principal.add_argument("--user", metavar="NAME")
        parser.add_argument("--policy", metavar="NAME", help="of the key's own; else its principal's counts")
        parser.add_argument("--expires-in", metavar="SPAN", help="as 30d or 12h; else it never expires")

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        return issued_key_result(
            create_key(
                principal=_principal(options),
                policy=None if options["policy"] is None else row_by_name(Policy, options["policy"]),
                expires_at=_expires_at(options["expires_in"]),
            )
        )

    def render_text(self, result: Mapping[str, Any]) -> str:
        return render_issued_key(result)


def _principal(options: dict[str, Any]) -> ServiceAccount | User:
    if options["user"] is not None:
        return row_by_name(User, options["user"], field="username")
    return row_by_name(ServiceAccount, options["service_account"])


def _expires_at(span: str | None) -> datetime | None:
    if span is None:
        return None
    try:
        return database_now() + parse_duration(span)
    except ValueError as error:
        raise CommandError(f"--expires-in: {error}") from error
