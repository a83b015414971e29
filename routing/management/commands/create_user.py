from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from routing.credentials.users import UserCreationError, create_user
from routing.management.json_command import JsonCommand, row_by_name
from routing.models import Policy, Project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.management.base import CommandParser


class Command(JsonCommand):
    help = "Create a user who may call. The user has no password until an admin sets one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("--project", metavar="P", required=True)
        parser.add_argument("--policy", metavar="Q", required=True)

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        project, policy = row_by_name(Project, options["project"]), row_by_name(Policy, options["policy"])
        try:
            user = create_user(name=options["name"], project=project, policy=policy)
        except UserCreationError as error:
            raise CommandError(str(error)) from error
        return {"id": str(user.pk)}

    def render_text(self, result: Mapping[str, Any]) -> str:
        return f"user {result['id']} is created; set a password in the admin if they should log in"
