from __future__ import annotations

from typing import TYPE_CHECKING

from routing.credentials.relay_keys import enable_key
from routing.management.key_switch_command import KeySwitchCommand

if TYPE_CHECKING:
    import uuid


class Command(KeySwitchCommand):
    help = "Enable a disabled relay key."
    resulting_state = "enabled"

    def switch(self, key_id: uuid.UUID) -> None:
        enable_key(key_id=key_id)
