"""Settling an attempt: state, response or error, usage event and perhaps the batch's end, in one transaction.

Every statement names the fence (`claim_no`): a worker that lost its item changes nothing. A settle is two statements in
one round trip, or four in three for the last items of a batch (batches/completion/batch_end.py says why).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from django.db import connection, transaction

from batches.completion.batch_end import LOCK_SHARED, end_if_complete, lock_exclusive, lock_key
from batches.execution.late_event import record_late_usage
from batches.execution.retry_policy import as_cancelled
from batches.states import ItemState
from relaybatch.db.pipeline import execute_under_lock
from routing.failpoints import failpoint
from usage.ledger import event_ctes, parameters

if TYPE_CHECKING:
    from batches.execution.claim import Claim
    from batches.execution.retry_policy import Settlement

_SETTLE = """
WITH settled AS (
    UPDATE batches_batchitem i SET
        state = %(state)s,
        finished_at = CASE WHEN %(final)s THEN clock_timestamp() END,
        attempt = i.attempt - %(uncounted)s,
        excused = i.excused + %(excused)s, excused_403 = i.excused_403 + %(excused_403)s,
        worker_id = NULL, published_at = NULL,
        not_before = CASE WHEN %(final)s THEN NULL
            ELSE least(b.expires_at, clock_timestamp() + make_interval(secs => %(wait)s)) END,
        waiting_reason = %(reason)s, response_length = %(length)s,
        error_code = %(code)s, error = %(error)s,
        upstream_status = %(status)s, upstream_error = %(upstream_error)s
    FROM batches_batch b
    WHERE i.id = %(item)s AND i.state = 'running' AND i.claim_no = %(claim)s AND b.id = i.batch_id
      AND {condition}
    RETURNING i.id
), {event}
SELECT count(*) FROM settled
"""
_NOT_CANCELLED = "b.cancel_initiated_at IS NULL"
# Another item of the batch still waits, unpublished. Looked for from the batch's end, where the index has few dead
# entries. Rows are compared whole, so that only the index of due items serves the order: with equalities the planner
# may take the batch's own index, and walk over all of its completed items at every settle.
_NOT_LAST = """(
    SELECT o.batch_id FROM batches_batchitem o
    WHERE (o.owner_id, o.batch_id) <= (i.owner_id, i.batch_id) AND o.state = 'available' AND o.published_at IS NULL
    ORDER BY o.owner_id DESC, o.batch_id DESC, o.idx DESC LIMIT 1) = i.batch_id"""

_EVENT = event_ctes(fence="settled")
# Back to `available` only while the batch is not cancelled; and never due after the batch's expiry.
_MAKE_AVAILABLE = _SETTLE.format(condition=_NOT_CANCELLED, event=_EVENT)
_FINISH_ONE_OF_MANY = _SETTLE.format(condition=_NOT_LAST, event=_EVENT)
_FINISH = _SETTLE.format(condition="true", event=_EVENT)


def settle(claim: Claim, settlement: Settlement) -> bool:
    """Return True when this call settled the item; False when it was lost, or settled by an earlier try of this call.

    Safe to repeat after a connection broke in the middle. What the call of a lost item used is kept as a late event.
    """
    if settlement.state is ItemState.AVAILABLE:
        settled = _make_available(claim, settlement)
    else:
        settled = _finish(claim, settlement)
    if not settled:
        record_late_usage(claim, settlement)
    return settled


def _make_available(claim: Claim, settlement: Settlement) -> bool:
    if _settle_under_shared_lock(_MAKE_AVAILABLE, claim, settlement):
        return True
    # The fence is lost, or the batch was cancelled in the meantime: then the item is final.
    return _finish_under_exclusive_lock(claim, as_cancelled(settlement))


def _finish(claim: Claim, settlement: Settlement) -> bool:
    one_of_many = _settle_under_shared_lock(_FINISH_ONE_OF_MANY, claim, settlement)
    return one_of_many or _finish_under_exclusive_lock(claim, settlement)


def _settle_under_shared_lock(statement: LiteralString, claim: Claim, settlement: Settlement) -> bool:
    values = _parameters(claim, settlement)
    return execute_under_lock(LOCK_SHARED, lock_key(claim.batch_id), statement, values) == [(1,)]


def _finish_under_exclusive_lock(claim: Claim, settlement: Settlement) -> bool:
    with transaction.atomic():
        lock_exclusive(claim.batch_id)
        with connection.cursor() as cursor:
            cursor.execute(_FINISH, _parameters(claim, settlement))
            settled = bool(cursor.fetchone() == (1,))
        failpoint("while_settling")
        if settled:
            end_if_complete(claim.batch_id)
    return settled


def _parameters(claim: Claim, settlement: Settlement) -> dict[str, Any]:
    failure = settlement.failure
    return {
        "item": claim.item_id,
        "claim": claim.claim_no,
        "state": settlement.state.value,
        "final": settlement.state is not ItemState.AVAILABLE,
        "uncounted": 0 if settlement.is_counted else 1,
        "excused": 0 if settlement.excused_status is None else 1,
        "excused_403": 1 if settlement.excused_status == 403 else 0,
        "wait": float(settlement.wait_seconds),
        "reason": settlement.waiting_reason.value if settlement.waiting_reason else "",
        "length": settlement.response_length,
        "code": failure.code.value if failure else "",
        "error": failure.message if failure else "",
        "status": failure.upstream_status if failure else None,
        "upstream_error": (failure.upstream_error or None) if failure else None,
        **parameters([settlement.event] if settlement.event else []),
    }
