from __future__ import annotations

from typing import TYPE_CHECKING

from routing.credentials.relay_keys import disable_key
from routing.management.key_switch_command import KeySwitchCommand

if TYPE_CHECKING:
    import uuid


class Command(KeySwitchCommand):
    help = "Disable a relay key until it is enabled again."
    resulting_state = "disabled"

    def switch(self, key_id: uuid.UUID) -> None:
        disable_key(key_id=key_id)
