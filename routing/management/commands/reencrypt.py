from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from routing.management.json_command import JsonCommand
from routing.secrets.encryption import SecretError
from routing.secrets.reencrypt import reencrypt_all

if TYPE_CHECKING:
    from collections.abc import Mapping


class Command(JsonCommand):
    help = "Encrypt every stored secret with the newest key of RELAY_MASTER_KEY. Safe to repeat, and while in service."

    def result(self, options: dict[str, Any]) -> Mapping[str, Any]:
        try:
            moved = reencrypt_all()
        except SecretError as error:
            raise CommandError(str(error)) from error
        if moved.problems:
            done = sum(moved.counts.values())
            raise CommandError(f"{done} moved, {len(moved.problems)} not: {'; '.join(moved.problems)}")
        return {f"{kind.replace(' ', '_')}s": n for kind, n in moved.counts.items()} | {
            "unchanged": moved.unchanged
        }
