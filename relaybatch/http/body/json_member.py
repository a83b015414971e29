"""One member of a JSON object, kept as the caller's bytes until somebody needs its value."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

from msgspec import Raw, UnsetType

Member: TypeAlias = Raw | UnsetType


def is_present(member: Member) -> TypeGuard[Raw]:
    """Null counts as absent."""
    return isinstance(member, Raw) and bytes(memoryview(member)[:4]) != b"null"
