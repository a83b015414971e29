"""One item's attempt: claim → check → send → settle. No transaction is open while it waits for the network."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings

from batches.execution.abort_cancelled import batch_over
from batches.execution.attempt_event import attempt_info, event_without_send
from batches.execution.claim import claim_held_by, claim_item
from batches.execution.item_payload import STORE_RESULT_FAILED, load_request, store_response
from batches.execution.retry_policy import (
    CANCELLED_UNSENT,
    EXPIRED_UNSENT,
    Settlement,
    give_back,
    settle_completed,
    settle_failure,
    settle_key_rejected,
    settle_postponed,
)
from batches.execution.settling.settle_fallbacks import settle_with_fallbacks
from batches.publishing.policy_pauses import end_breaker_pause, limit_concurrency, pause_policy
from batches.states import ItemState
from relaybatch.db.outage import retry_during_outage
from routing.calls.call import Call
from routing.calls.failures import CallFailed, Failure, FailureCode
from routing.calls.waiting_reason import WaitingReason
from routing.credentials.recheck import recheck
from routing.failpoints import failpoint
from usage.metered_send import Metered, metered_send

if TYPE_CHECKING:
    import uuid

    from batches.execution.call_slots import CallSlot
    from batches.execution.claim import Claim
    from batches.execution.in_flight import InFlightItems
    from routing.transport.abort_handle import AbortHandle

logger = logging.getLogger(__name__)

# Since a claim that is older, the batch may have been cancelled, or may have expired.
MAX_CLAIM_AGE_SECONDS = 0.025
UNSENT = {
    ItemState.CANCELLED: Settlement(ItemState.CANCELLED, failure=CANCELLED_UNSENT, is_counted=False),
    ItemState.EXPIRED: Settlement(ItemState.EXPIRED, failure=EXPIRED_UNSENT, is_counted=False),
}


def execute_item(item_id: uuid.UUID, *, in_flight: InFlightItems) -> Claim | None:
    """Run the item if it can be claimed. Safe to call for any id, any number of times, at the same moment.

    Retries without end while the database is unavailable: a response once received is kept until it can be settled.
    Returns None where no other item can take its place: it was not claimed; or it was given back because the policy's
    calls are at their concurrency limit, and the end of one of those publishes the next item.
    """
    with in_flight.reserve(item_id) as is_reserved:
        return _execute_reserved(item_id, in_flight) if is_reserved else None


def _execute_reserved(item_id: uuid.UUID, in_flight: InFlightItems) -> Claim | None:
    with in_flight.call_slots.near() as slot:
        if slot is None:
            return None
        claim = retry_during_outage(_claim, item_id, in_flight)
        if claim is None:
            return None
        failpoint("after_claim")
        settlement = _attempt_safely(claim, slot, in_flight)
        failpoint("before_settle")
        settled = retry_during_outage(settle_with_fallbacks, claim, settlement)
        failpoint("after_settle")
        retry_during_outage(_update_policy_pause, claim, settlement)
        _log_end(claim, settled)
    return None if settlement and settlement.concurrency_limit else claim


def _claim(item_id: uuid.UUID, in_flight: InFlightItems) -> Claim | None:
    # A claim may have been committed before the connection dropped: the repeated call then finds it as ours.
    worker_id = in_flight.worker_id
    return (
        in_flight.claim(item_id)
        or claim_item(item_id, worker_id=worker_id)
        or claim_held_by(item_id, worker_id=worker_id)
    )


def _attempt_safely(claim: Claim, slot: CallSlot, in_flight: InFlightItems) -> Settlement | None:
    """Check, send and store the response. An unexpected exception is logged and gives None, to be settled as
    `worker_lost`, so that the item never stays `running`."""
    with in_flight.track(claim) as abort_handle:
        try:
            attempted = _attempt(claim, slot, abort_handle)
            return _settlement_of(claim, attempted) if isinstance(attempted, Metered) else attempted
        except Exception:
            logger.exception("attempt failed unexpectedly", extra=claim.log_fields)
            return None


def _attempt(claim: Claim, slot: CallSlot, abort_handle: AbortHandle) -> Metered | Settlement:
    """Return the call's outcome, or the settlement of an attempt that ends before the call."""
    if claim.is_cancelled:
        return UNSENT[ItemState.CANCELLED]
    if claim.is_overdue:
        return UNSENT[ItemState.EXPIRED]
    started = time.monotonic()
    try:
        body = retry_during_outage(load_request, claim)
    except CallFailed as error:
        return _rejected(claim, error.failure, started)
    with slot as has_slot:
        if not has_slot:
            return give_back(reason=WaitingReason.WORKER_STOPPED if slot.is_stopping else None)
        return retry_during_outage(_check_and_send, claim, slot, body, abort_handle)


def _check_and_send(
    claim: Claim, slot: CallSlot, body: bytes, abort_handle: AbortHandle
) -> Metered | Settlement:
    """Raises DATABASE_UNAVAILABLE only while nothing has been sent, so that it can be repeated."""
    started = time.monotonic()
    if slot.claim_age_seconds > MAX_CLAIM_AGE_SECONDS and (over := batch_over(claim.batch_id)):
        return UNSENT[over]
    try:
        caller_snapshot = recheck(claim.caller)
    except CallFailed as error:
        return _rejected(claim, error.failure, started)
    return metered_send(
        call=_build_call(claim, body, abort_handle),
        caller_snapshot=caller_snapshot,
        attempt=attempt_info(claim),
        started=started,
    )


def _rejected(claim: Claim, failure: Failure, started: float) -> Settlement:
    duration_ms = int((time.monotonic() - started) * 1000)
    event = event_without_send(claim, duration_ms=duration_ms, failure=failure, sent=False)
    return settle_failure(claim, failure, event)


def _build_call(claim: Claim, body: bytes, abort_handle: AbortHandle) -> Call:
    return Call(
        caller=claim.caller,
        adapter=claim.shape,
        body=body,
        idempotency_key=str(claim.item_id),
        timeout_seconds=settings.RELAY_BATCH_ITEM_TIMEOUT_S,
        abort_handle=abort_handle,
        headers=claim.upstream_headers,
    )


def _settlement_of(claim: Claim, metered: Metered) -> Settlement:
    if metered.outcome.failure is None:
        return _store(claim, metered)
    settlement = _settlement_of_failed(claim, metered, metered.outcome.failure)
    return replace(settlement, request_id=metered.outcome.request_id)


def _settlement_of_failed(claim: Claim, metered: Metered, failure: Failure) -> Settlement:
    outcome, event = metered.outcome, metered.event
    if outcome.postponement:
        return settle_postponed(claim, outcome, event)
    if outcome.host_key_rejected:
        return settle_key_rejected(claim, outcome, event)
    if failure.code == FailureCode.WORKER_LOST and not outcome.sent:
        return give_back(reason=WaitingReason.WORKER_STOPPED)
    return settle_failure(claim, failure, event)


def _store(claim: Claim, metered: Metered) -> Settlement:
    # The response is stored before the row says that there is one, or with it.
    body, event, request_id = metered.outcome.body, metered.event, metered.outcome.request_id
    is_inline = len(body) <= settings.RELAY_BATCH_INLINE_RESPONSE_BYTES
    if is_inline or store_response(claim, body):
        response = body if is_inline else None
        return settle_completed(
            response_length=len(body), response=response, event=event, request_id=request_id
        )
    failure = STORE_RESULT_FAILED
    settlement = settle_failure(claim, failure, replace(event, error_kind=failure.code))
    return replace(settlement, request_id=request_id)


def _update_policy_pause(claim: Claim, settlement: Settlement | None) -> None:
    if settlement and settlement.waiting_reason and settlement.concurrency_limit:
        limit_concurrency(
            claim.policy_id, reason=settlement.waiting_reason, max_running=settlement.concurrency_limit
        )
    elif settlement and settlement.waiting_reason and settlement.pause_seconds > 0:
        pause_policy(claim.policy_id, reason=settlement.waiting_reason, seconds=settlement.pause_seconds)
    elif claim.has_breaker_pause and (settlement is None or settlement.is_counted):
        end_breaker_pause(claim.policy_id)


def _log_end(claim: Claim, settled: Settlement | None) -> None:
    """Log how the attempt ended; `settled` None: it wrote nothing, since another worker has the item, or an
    earlier try of the same write was committed."""
    if settled is None:
        logger.info("item lost to another worker", extra=claim.log_fields)
        return
    level = logging.DEBUG if settled.state is ItemState.COMPLETED else logging.INFO
    if not logger.isEnabledFor(level):
        return
    code = settled.failure.code.value if settled.failure else ""
    logger.log(
        level,
        "attempt settled",
        extra={**claim.log_fields, "state": settled.state.value, "code": code},
    )
