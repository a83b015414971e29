from __future__ import annotations

from typing import TYPE_CHECKING

from relaybatch.db.clock import database_now
from routing.credentials.relay_keys import revoke_key
from routing.management.key_switch_command import KeySwitchCommand

if TYPE_CHECKING:
    import uuid


class Command(KeySwitchCommand):
    help = "Revoke a relay key for good."
    resulting_state = "revoked"

    def switch(self, key_id: uuid.UUID) -> None:
        revoke_key(key_id=key_id, now=database_now())
