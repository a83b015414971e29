"""The id that a batch's callers know it by: UUIDv7 underneath, with the prefix of its dialect."""

from __future__ import annotations

import uuid

PREFIXES = {"relay": "", "messages": "msgbatch_", "chat": "batch_", "openai": "batch_"}


def public_id(dialect: str, batch_id: uuid.UUID) -> str:
    prefix = PREFIXES[dialect]
    return f"{prefix}{batch_id.hex}" if prefix else str(batch_id)


def parse_batch_id(text: str) -> uuid.UUID | None:
    """The row's id, or None for what can be no id of ours; a lookup then decides whether it exists."""
    for prefix in ("msgbatch_", "batch_"):
        if text.startswith(prefix):
            return _uuid(text.removeprefix(prefix), length=32)
    return _uuid(text, length=36)


def _uuid(text: str, *, length: int) -> uuid.UUID | None:
    try:
        return uuid.UUID(text) if len(text) == length and text == text.lower() else None
    except ValueError:
        return None
