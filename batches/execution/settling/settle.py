"""Settling an attempt: state, response or error, usage event and perhaps the batch's end, in one transaction.

Attempts that end at the same moment are settled together, under shared locks of their batches. What such a group
leaves out is settled alone: the last items of a batch, items of a batch that is being cancelled or ended, items that
were lost, and all of a group that the database rejected, since one row may be the reason. Why the lock:
batches/completion/batch_end.py.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import transaction

from batches.completion.batch_end import END_IF_COMPLETE, LOCK_EXCLUSIVE, lock_key
from batches.execution.retry_policy import as_cancelled
from batches.execution.settling.late_event import record_late_usage
from batches.execution.settling.settle_statement import (
    SETTLE_ALONE,
    SETTLE_ONES_OF_MANY,
    TRY_LOCK_SHARED,
    lock_keys,
    settle_parameters,
)
from batches.models import Batch
from batches.states import ItemState
from relaybatch.db.group_commit import GroupCommit
from relaybatch.db.outage import DATABASE_UNAVAILABLE, is_row_error
from relaybatch.db.pipeline import execute_pipelined, execute_under_lock
from routing.failpoints import failpoint

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from batches.execution.claim import Claim
    from batches.execution.retry_policy import Settlement

    Attempt = tuple[Claim, Settlement]

logger = logging.getLogger(__name__)


def settle(claim: Claim, settlement: Settlement) -> bool:
    """Return True when this call settled the item; False when it was lost, or settled by an earlier try of this call.

    Safe to repeat after a connection broke in the middle. What the call of a lost item used is kept as a late event.
    """
    # The only item of a batch is its last, which no group takes.
    in_group = not claim.is_only_item and _settle_in_group((claim, settlement))
    settled = in_group or _settle_alone(claim, settlement)
    if not settled:
        record_late_usage(claim, settlement)
    return settled


def _settle_together(attempts: Sequence[Attempt]) -> list[bool]:
    """Settle those that certainly are not the last of their batch; whether each of them was settled."""
    try:
        rows = execute_under_lock(
            TRY_LOCK_SHARED,
            lock_keys(attempts),
            (SETTLE_ONES_OF_MANY, settle_parameters(attempts)),
            before_commit=lambda: failpoint("in_group_settle"),
        )
    except Exception as error:
        if isinstance(error, DATABASE_UNAVAILABLE) and not is_row_error(error):
            raise
        logger.warning(
            "group settle rejected", extra={"reason": type(error).__name__, "items": len(attempts)}
        )
        rows = []
    settled = {row[0] for row in rows}
    return [claim.item_id in settled for claim, _ in attempts]


_settle_in_group: GroupCommit[Attempt, bool] = GroupCommit(_settle_together)


def _settle_alone(claim: Claim, settlement: Settlement) -> bool:
    if _settle_under_exclusive_lock(claim, settlement):
        return True
    # The fence is lost, or the batch was cancelled in the meantime: then the item is final.
    is_cancelled = settlement.state is ItemState.AVAILABLE and _is_batch_cancelled(claim.batch_id)
    return is_cancelled and _settle_under_exclusive_lock(claim, as_cancelled(settlement))


def _is_batch_cancelled(batch_id: uuid.UUID) -> bool:
    return Batch.objects.filter(id=batch_id, cancel_initiated_at__isnull=False).exists()


def _settle_under_exclusive_lock(claim: Claim, settlement: Settlement) -> bool:
    # Not one round trip with its commit: the server ends the session of a client that hangs in an open transaction, but
    # not while it still waits for a pipeline's end.
    with transaction.atomic():
        _, settled, _ = execute_pipelined(
            [
                (LOCK_EXCLUSIVE, [lock_key(claim.batch_id)]),
                (SETTLE_ALONE, settle_parameters([(claim, settlement)])),
                (END_IF_COMPLETE, {"batch": claim.batch_id}),
            ]
        )
        failpoint("while_settling")
    return settled == [(claim.item_id,)]
