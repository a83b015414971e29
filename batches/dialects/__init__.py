"""The dialects that are served. Path and body of the create choose one, and the batch keeps it.

To add one, write a `Dialect` in a file of its own and list it here.
"""

from __future__ import annotations

from batches.dialects.chat import Chat
from batches.dialects.dialect import Dialect
from batches.dialects.messages import Messages
from batches.dialects.openai.dialect import OpenAI
from batches.dialects.relay.dialect import Relay
from batches.models.dialect_traits import register_dialect

RELAY: Dialect = Relay()
CHAT: Dialect = Chat()
MESSAGES: Dialect = Messages()
OPENAI: Dialect = OpenAI()
# By the name that the batch stores.
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (RELAY, CHAT, MESSAGES, OPENAI)}
for _dialect in DIALECTS.values():
    register_dialect(_dialect.name, _dialect.traits)

__all__ = ["CHAT", "DIALECTS", "MESSAGES", "OPENAI", "RELAY", "Dialect"]
