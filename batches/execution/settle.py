"""Settling an attempt: state, response or error, usage event and perhaps the batch's end, in one transaction.

Conditional on the fence: a worker that lost its item changes nothing. Two statements in one round trip, or four in
three for the last items of a batch (batches/completion/batch_end.py says why).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, LiteralString

from django.db import connection, transaction

from batches.completion.batch_end import LOCK_SHARED, end_if_complete, lock_exclusive, lock_key
from batches.models import ItemState
from relaybatch.db.pipeline import execute_under_lock
from routing.failpoints import failpoint
from routing.upstream.failures import Failure
from usage.ledger import event_ctes, parameters, record
from usage.models import UsageEvent
from usage.totals import delete_batch_total

if TYPE_CHECKING:
    import uuid

    from batches.execution.claim import Claim
    from usage.events import EventDraft

CANCELLED = Failure("cancelled", "cancelled while running")


@dataclass(frozen=True, slots=True)
class Settlement:
    """What becomes of a claimed item. A final `state`, or `available` again after `wait_seconds`.

    `counted`: whether the attempt counts; one that is given back does not, and has no `event`. `excused_status`: the
    401 or 403 for which it is left out of `max_attempts`. `pause_seconds`: how long the batch's policy is passed over
    besides. `at_once`: as many of its calls run already as may.
    """

    state: ItemState
    failure: Failure | None = None
    response_length: int | None = None
    wait_seconds: float = 0.0
    waiting_reason: str = ""
    counted: bool = True
    excused_status: int | None = None
    pause_seconds: float = 0.0
    at_once: int = 0
    event: EventDraft | None = None


# Back to `available` only while the batch is not cancelled; and never due after the batch's expiry.
# Final by the fast way only while another item still waits, unpublished: looked for from the batch's end, where
# the index has few dead entries.
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
# Rows are compared whole, so that only the index of due items serves the order: with equalities the planner may take
# the batch's own index, and walk over all of its completed items at every settle.
_NOT_LAST = """(
    SELECT o.batch_id FROM batches_batchitem o
    WHERE (o.owner_id, o.batch_id) <= (i.owner_id, i.batch_id) AND o.state = 'available' AND o.published_at IS NULL
    ORDER BY o.owner_id DESC, o.batch_id DESC, o.idx DESC LIMIT 1) = i.batch_id"""

_EVENT = event_ctes(fence="settled")
_MAKE_AVAILABLE = _SETTLE.format(condition=_NOT_CANCELLED, event=_EVENT)
_FINISH_ONE_OF_MANY = _SETTLE.format(condition=_NOT_LAST, event=_EVENT)
_FINISH = _SETTLE.format(condition="true", event=_EVENT)


def settle(claim: Claim, settlement: Settlement) -> bool:
    """True when this call settled the item; false when the item was lost, or settled by an earlier try of this call.

    Safe to call again after a connection broke in the middle. What a lost item's call used is kept as a late event.
    """
    if settlement.state is ItemState.AVAILABLE:
        if _settle_under_shared_lock(_MAKE_AVAILABLE, claim, settlement):
            return True
        # The fence is lost, or the batch was cancelled meanwhile: then the item is over.
        return _finish_under_exclusive_lock(claim, _as_cancelled(settlement)) or _record_late_usage(
            claim, settlement
        )
    if _settle_under_shared_lock(_FINISH_ONE_OF_MANY, claim, settlement):
        return True
    return _finish_under_exclusive_lock(claim, settlement) or _record_late_usage(claim, settlement)


def _as_cancelled(settlement: Settlement) -> Settlement:
    """An attempt that would have been repeated, or was given back before anything was sent.

    The event of a lost worker's stays what it is: nobody knows what that one has sent, and it may still tell.
    """
    event = settlement.event
    if event and event.error_kind != "worker_lost":
        event = replace(event, error_kind=CANCELLED.code)
    failure = CANCELLED if settlement.counted else Failure(CANCELLED.code, "")
    return replace(settlement, state=ItemState.CANCELLED, failure=failure, waiting_reason="", event=event)


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


def _record_late_usage(claim: Claim, settlement: Settlement) -> bool:
    """Always false: the item was not settled by this call."""
    event = settlement.event
    if event and event.has_usage and not UsageEvent.objects.filter(id=event.id).exists():
        _record_late(claim.batch_id, event.as_late())
    return False


def _record_late(batch_id: uuid.UUID, event: EventDraft) -> None:
    """A batch that was removed meanwhile has no total any more. One that is just being removed is waited for."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM batches_batch WHERE id = %s FOR KEY SHARE", [batch_id])
            is_there = cursor.rowcount == 1
        record(event)
        if not is_there:
            delete_batch_total(batch_id)


def _parameters(claim: Claim, settlement: Settlement) -> dict[str, Any]:
    failure = settlement.failure
    is_final = settlement.state is not ItemState.AVAILABLE
    return {
        "item": claim.item_id,
        "claim": claim.claim_no,
        "state": settlement.state.value,
        "final": is_final,
        "uncounted": 0 if settlement.counted else 1,
        "excused": 0 if settlement.excused_status is None else 1,
        "excused_403": 1 if settlement.excused_status == 403 else 0,
        "wait": float(settlement.wait_seconds),
        "reason": settlement.waiting_reason,
        "length": settlement.response_length,
        "code": failure.code if failure else "",
        "error": failure.message if failure else "",
        "status": failure.upstream_status if failure else None,
        "upstream_error": (failure.upstream_error or None) if failure else None,
        **parameters([settlement.event] if settlement.event else []),
    }
