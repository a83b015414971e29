"""What a create needs of the database, in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString

from batches.submission.owner_quota import OPEN_ITEMS_BOUND, get_or_create_owner
from relaybatch.db.pipeline import execute_prepared

if TYPE_CHECKING:
    from datetime import datetime

_CONTEXT: LiteralString = f"""
WITH owner AS (SELECT id FROM batches_owner WHERE name = %s)
SELECT clock_timestamp(), (SELECT id FROM owner), (SELECT value FROM batches_payloadstoremark), bound.*
FROM ({OPEN_ITEMS_BOUND % "(SELECT id FROM owner)"}) AS bound
"""


@dataclass(frozen=True, slots=True)
class CreateContext:
    """The database's clock, the owner, and the value of the payload store's marker (None before its first use).

    `open_items_bound`, `max_connections`: see OPEN_ITEMS_BOUND.
    """

    now: datetime
    owner_id: int
    store_mark: str | None
    open_items_bound: int
    max_connections: int


def read_create_context(owner_name: str) -> CreateContext:
    """An owner that is new is created."""
    now, owner_id, *rest = execute_prepared(_CONTEXT, [owner_name])[0]
    return CreateContext(now, owner_id or get_or_create_owner(owner_name).id, *rest)
