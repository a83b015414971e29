"""Which dialects are served where. A dialect is chosen by path and body at creation, and stored on the batch.

A further dialect is a file with a `Dialect` and a line here.
"""

from __future__ import annotations

from batches.dialects.dialect import Dialect
from batches.dialects.relay import Relay

RELAY: Dialect = Relay()
# By the name that is stored on the batch.
DIALECTS: dict[str, Dialect] = {RELAY.name: RELAY}

__all__ = ["DIALECTS", "RELAY", "Dialect"]
