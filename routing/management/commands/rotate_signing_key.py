from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from relaybatch.db.clock import database_now
from routing.credentials.signing_keys import rotate_signing_key
from routing.management.json_command import JsonCommand
from routing.secrets.encryption import SecretError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Command(JsonCommand):
    help = "Sign inference tokens with a new key from now on. Existing tokens stay valid until they expire."

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        try:
            return {"created": 1, "retired": rotate_signing_key(now=database_now())}
        except SecretError as error:
            raise CommandError(str(error)) from error
