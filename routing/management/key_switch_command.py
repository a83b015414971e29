"""The base class of the commands that enable, disable or revoke a relay key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from routing.credentials.relay_keys import RelayKeyError
from routing.management.json_command import JsonCommand, parse_key_id

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from django.core.management.base import CommandParser


class KeySwitchCommand(JsonCommand):
    """A subclass implements `switch()`, which raises RelayKeyError, and names the `resulting_state`."""

    resulting_state = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID")

    def switch(self, key_id: uuid.UUID) -> None:
        raise NotImplementedError

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        key_id = parse_key_id(options["id"])
        try:
            self.switch(key_id)
        except RelayKeyError as error:
            raise CommandError(str(error)) from error
        return {"id": str(key_id)}

    def render_text(self, result: Mapping[str, Any]) -> str:
        return f"key {result['id']} is {self.resulting_state}"
