from __future__ import annotations

from typing import TYPE_CHECKING

from routing.credentials.relay_keys import disable_key
from routing.management.switch_command import SwitchingCommand

if TYPE_CHECKING:
    import uuid


class Command(SwitchingCommand):
    help = "Stops a relay key until it is enabled again."
    done = "disabled"

    def switch(self, identifier: uuid.UUID) -> None:
        disable_key(key_id=identifier)
