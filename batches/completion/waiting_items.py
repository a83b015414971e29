"""Making the items final that have not started, when their batch is cancelled or expires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from batches.completion.batch_end import end_if_complete

if TYPE_CHECKING:
    import uuid

    from batches.states import ItemState

# The failure codes of cancelled and expired items are the names of their states.
_FINISH_WAITING = """
UPDATE batches_batchitem SET state = %(state)s, finished_at = clock_timestamp(), published_at = NULL,
    not_before = NULL, waiting_reason = '', error_code = %(state)s, error = '', upstream_status = NULL,
    upstream_error = NULL
WHERE batch_id = %(batch)s AND state = 'available'
"""


def finish_waiting_items(batch_id: uuid.UUID, state: ItemState) -> None:
    """Make every waiting item final, and end the batch if none runs. Needs `lock_exclusive`."""
    with connection.cursor() as cursor:
        cursor.execute(_FINISH_WAITING, {"state": state.value, "batch": batch_id})
    end_if_complete(batch_id)
