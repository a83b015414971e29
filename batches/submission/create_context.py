"""What a create needs of the database, in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString

from batches.submission.owner_quota import get_or_create_owner
from relaybatch.db.pipeline import execute_prepared

if TYPE_CHECKING:
    from datetime import datetime

_CONTEXT: LiteralString = """
SELECT clock_timestamp(), (SELECT id FROM batches_owner WHERE name = %s), (SELECT value FROM batches_payloadstoremark)
"""


@dataclass(frozen=True, slots=True)
class CreateContext:
    """The database's clock, the owner, and the value of the payload store's marker (None before its first use)."""

    now: datetime
    owner_id: int
    store_mark: str | None


def read_create_context(owner_name: str) -> CreateContext:
    """An owner that is new is created."""
    now, owner_id, store_mark = execute_prepared(_CONTEXT, [owner_name])[0]
    return CreateContext(now, owner_id or get_or_create_owner(owner_name).id, store_mark)
