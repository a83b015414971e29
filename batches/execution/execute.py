"""One item's attempt: claim → check → send → settle. No transaction is open while it waits for the network."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings

from batches.execution.attempt_event import attempt_info, event_without_send, worker_lost_settlement
from batches.execution.claim import claim_held_by, claim_item
from batches.execution.retry_policy import give_back, settle_failure, settle_key_rejected, settle_postponed
from batches.execution.settle import Settlement
from batches.execution.settle_fallbacks import settle_with_fallbacks
from batches.models import ItemState
from batches.payloads import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError, open_store
from batches.publishing.policy_pauses import end_breaker_pause, limit_concurrency, pause_policy
from relaybatch.db.outage import retry_during_outage
from routing.credentials.recheck import recheck
from routing.failpoints import failpoint
from routing.upstream.call import Call
from routing.upstream.failures import CallFailed, Failure
from usage.metered_send import metered_send

if TYPE_CHECKING:
    import uuid

    from batches.execution.claim import Claim
    from batches.execution.in_flight import InFlightItems
    from routing.transport.abort_handle import AbortHandle
    from routing.upstream.call import Outcome
    from usage.events import EventDraft

logger = logging.getLogger(__name__)

# Between tries to store a response: long enough for a hiccup of a network's file system, and it was paid for.
STORE_RETRY_PAUSES_SECONDS = (0.1, 0.5, 2.0)


def execute_item(item_id: uuid.UUID, *, in_flight: InFlightItems) -> Claim | None:
    """Runs the item if it can be claimed. Safe to call for any id, any number of times, at the same moment.

    Waits without end for a database that is away: an answer once received is kept until it can be settled. None: no
    other item can take its place. It was not claimed; or given back, since as many calls run as may at once, and the
    end of one of those publishes the next.
    """
    with in_flight.reserve(item_id) as is_reserved:
        claim = retry_during_outage(lambda: _claim(item_id, in_flight)) if is_reserved else None
        if claim is None:
            return None
        failpoint("after_claim")
        return _execute(claim, in_flight)


def _claim(item_id: uuid.UUID, in_flight: InFlightItems) -> Claim | None:
    """Safe to call again after a claim that was committed unheard: that one is ours then."""
    worker_id = in_flight.worker_id
    return claim_item(item_id, worker_id=worker_id) or claim_held_by(item_id, worker_id=worker_id)


def _execute(claim: Claim, in_flight: InFlightItems) -> Claim | None:
    with in_flight.track(claim) as abort_handle:
        settlement = _attempt_safely(claim, abort_handle)
    failpoint("before_settle")
    settled = retry_during_outage(lambda: settle_with_fallbacks(claim, settlement))
    failpoint("after_settle")
    retry_during_outage(lambda: _update_policy_pause(claim, settlement))
    _log(claim, settlement, settled=settled)
    return None if settlement.at_once else claim


def _update_policy_pause(claim: Claim, settlement: Settlement) -> None:
    if settlement.at_once:
        limit_concurrency(claim.policy_id, reason=settlement.waiting_reason, max_running=settlement.at_once)
    elif settlement.pause_seconds > 0:
        pause_policy(claim.policy_id, reason=settlement.waiting_reason, seconds=settlement.pause_seconds)
    elif claim.breaker_pause and settlement.counted:
        end_breaker_pause(claim.policy_id)


def _attempt_safely(claim: Claim, abort_handle: AbortHandle) -> Settlement:
    """An error of our own must not leave the item running for ever: it ends as a lost worker's, and is told."""
    try:
        return retry_during_outage(lambda: _attempt(claim, abort_handle))
    except Exception:
        logger.exception("an attempt broke off", extra=claim.log_fields)
        return retry_during_outage(lambda: worker_lost_settlement(claim))


def _attempt(claim: Claim, abort_handle: AbortHandle) -> Settlement:
    """Raises the database's errors, and only while nothing has been sent: it may then be called again."""
    started = time.monotonic()
    if claim.cancelled:
        return Settlement(ItemState.CANCELLED, failure=Failure("cancelled", ""), counted=False)
    if claim.overdue:
        return Settlement(ItemState.EXPIRED, failure=Failure("expired", ""), counted=False)
    try:
        body = _load_request(claim)
        standing = recheck(claim.caller)
    except CallFailed as error:
        return _rejected(claim, error.failure, started)
    call = _build_call(claim, body, abort_handle)
    metered = metered_send(call=call, caller_snapshot=standing, attempt=attempt_info(claim), started=started)
    return _settlement(claim, metered.outcome, metered.event)


def _settlement(claim: Claim, outcome: Outcome, event: EventDraft) -> Settlement:
    if outcome.postponement:
        return settle_postponed(claim, outcome, event)
    if outcome.host_key_rejected:
        return settle_key_rejected(claim, outcome, event)
    if outcome.failure is None:
        return _complete(claim, outcome.body, event)
    if outcome.failure.code == "worker_lost" and not outcome.sent:
        return give_back(reason="worker_stopped")
    return settle_failure(claim, outcome.failure, event)


def _rejected(claim: Claim, failure: Failure, started: float) -> Settlement:
    duration_ms = int((time.monotonic() - started) * 1000)
    return settle_failure(
        claim, failure, event_without_send(claim, duration_ms=duration_ms, failure=failure, sent=False)
    )


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


def _load_request(claim: Claim) -> bytes:
    try:
        return open_store().read_request(
            claim.batch_id, offset=claim.request_offset, length=claim.request_length
        )
    except (PayloadReadError, PayloadStoreUnavailable) as error:
        logger.warning("load input failed: %s", error, extra=claim.log_fields)
        failure = Failure(
            "load_input_failed", "load input: the request payload cannot be read", retryable=True
        )
        raise CallFailed(failure) from error


def _complete(claim: Claim, body: bytes, event: EventDraft) -> Settlement:
    """Stores the response before the row says that there is one."""
    for pause_seconds in (*STORE_RETRY_PAUSES_SECONDS, None):
        try:
            retry_during_outage(lambda: _put_response(claim, body))
        except (PayloadWriteError, PayloadStoreUnavailable) as error:
            logger.warning("store result failed: %s", error, extra=claim.log_fields)
            if pause_seconds:
                time.sleep(pause_seconds)
        else:
            return Settlement(ItemState.COMPLETED, response_length=len(body), event=event)
    failure = Failure("store_result_failed", "store result: the response cannot be stored", retryable=True)
    return settle_failure(claim, failure, replace(event, error_kind=failure.code))


def _put_response(claim: Claim, body: bytes) -> None:
    open_store().put_response(claim.batch_id, idx=claim.idx, claim_no=claim.claim_no, body=body)


def _log(claim: Claim, settlement: Settlement, *, settled: bool) -> None:
    code = settlement.failure.code if settlement.failure else ""
    state = settlement.state.value if settled else "lost to another worker"
    level = logging.DEBUG if state == ItemState.COMPLETED else logging.INFO
    logger.log(level, "item %s %s", state, code, extra=claim.log_fields)
