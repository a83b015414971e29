from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from relaybatch.db.clock import database_now
from routing.credentials.tokens import revoke_all_tokens, revoke_token
from routing.management.json_command import JsonCommand, row_by_name
from routing.models import User

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.management.base import CommandParser


class Command(JsonCommand):
    help = "Revoke one inference token, or all of a user's, for good; print how many were in use."

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--user", metavar="NAME")
        which.add_argument("--jti", metavar="J")

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        now = database_now()
        if options["user"] is not None:
            return {
                "revoked": revoke_all_tokens(row_by_name(User, options["user"], field="username"), now=now)
            }
        return {"revoked": revoke_token(jti=_jti(options["jti"]), now=now)}


def _jti(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise CommandError("--jti: expected a token's id, a UUID") from None
