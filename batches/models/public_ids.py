"""The id by which callers know a batch: its UUIDv7, written as its dialect writes ids."""

from __future__ import annotations

import uuid

from batches.models.dialect_traits import id_prefixes, traits_of


def public_id(dialect: str, batch_id: uuid.UUID) -> str:
    prefix = traits_of(dialect).id_prefix
    return f"{prefix}{batch_id.hex}" if prefix else str(batch_id)


def parse_batch_id(text: str) -> uuid.UUID | None:
    """Return the row's id, or None for what can be no id of ours; a lookup then decides whether it exists."""
    for prefix in id_prefixes():
        if text.startswith(prefix):
            return parse_uuid(text.removeprefix(prefix), length=32)
    return parse_uuid(text, length=36)


def parse_uuid(text: str, *, length: int) -> uuid.UUID | None:
    """Parse 32 hex digits, or the usual form of 36 characters; in lower case only."""
    try:
        return uuid.UUID(text) if len(text) == length and text == text.lower() else None
    except ValueError:
        return None
