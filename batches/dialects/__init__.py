"""Which dialects are served where. A dialect is chosen by path and body at creation, and stored on the batch.

A further dialect is a file with a `Dialect` and a line here.
"""

from __future__ import annotations

from batches.dialects.chat import Chat
from batches.dialects.dialect import Dialect
from batches.dialects.messages import Messages
from batches.dialects.relay.dialect import Relay
from batches.models.dialect_traits import register_dialect

RELAY: Dialect = Relay()
CHAT: Dialect = Chat()
MESSAGES: Dialect = Messages()
# By the name that is stored on the batch.
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (RELAY, CHAT, MESSAGES)}
for _dialect in DIALECTS.values():
    register_dialect(_dialect.name, _dialect.traits)

__all__ = ["CHAT", "DIALECTS", "MESSAGES", "RELAY", "Dialect"]
