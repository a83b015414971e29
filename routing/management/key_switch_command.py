"""The commands that change whether a key works: one argument, one use case, the id as the answer."""

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
    """A subclass gives `switch()`, which raises KeyRefused, and `done`, the word for what it did."""

    resulting_state = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID")

    def switch(self, identifier: uuid.UUID) -> None:
        raise NotImplementedError

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        identifier = parse_key_id(options["id"])
        try:
            self.switch(identifier)
        except RelayKeyError as refused:
            raise CommandError(str(refused)) from refused
        return {"id": str(identifier)}

    def render_text(self, result: Mapping[str, Any]) -> str:
        return f"key {result['id']} is {self.resulting_state}"
