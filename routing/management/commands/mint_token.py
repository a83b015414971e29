from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from relaybatch.db.clock import database_now
from routing.credentials.tokens import DEFAULT_TTL_SECONDS, TokenDenied, mint_token
from routing.durations import parse_duration
from routing.management.json_command import JsonCommand, row_by_name
from routing.models import Project, User
from routing.secrets.encryption import SecretError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.management.base import CommandParser


class Command(JsonCommand):
    help = "Create an inference token of a user and show it, this once."
    is_shown_once = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="NAME", required=True)
        parser.add_argument("--project", metavar="P", help="any project; else the user's own")
        parser.add_argument("--ttl", metavar="SPAN", help="as 30m or 12h, 24h at most; else 1h")

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        user = row_by_name(User, options["user"], field="username")
        project = None if options["project"] is None else row_by_name(Project, options["project"])
        try:
            minted = mint_token(
                user, project=project, ttl_seconds=_ttl_seconds(options["ttl"]), now=database_now()
            )
        except (TokenDenied, SecretError) as error:
            raise CommandError(str(error)) from error
        return minted.as_json()

    def render_text(self, result: Mapping[str, Any]) -> str:
        return f"{super().render_text(result)}\nKeep the token now: it is not shown again."


def _ttl_seconds(span: str | None) -> int:
    if span is None:
        return DEFAULT_TTL_SECONDS
    try:
        return int(parse_duration(span).total_seconds())
    except ValueError as error:
        raise CommandError(f"--ttl: {error}") from error
