"""What becomes of an item after an attempt: a pure decision, without a clock, a row or Django.

| outcome | attempts left | none left |
| --- | --- | --- |
| a usable response | completed | completed |
| aborted by a cancel | cancelled | cancelled |
| a failure that may end differently next time | available, after a wait | discarded |
| its worker stopped or was lost | available, at once | discarded |
| nothing sent, and it may be sent later | given back: available, no attempt counted | the same |
| our host key was rejected (401, 403) | excused: available, when a key may be usable | the same |
| any other failure | discarded | discarded |

Attempts left: `max_attempts` is compared with the attempts that were not excused. A rejected host key is excused only
while another key is left or the batch waits, and a 403, which may be about the item, three times; else it counts as
any other failure.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from batches.states import ItemState, RateLimitMode
from routing.calls.failures import Failure, FailureCode
from routing.calls.waiting_reason import WaitingReason

if TYPE_CHECKING:
    from batches.execution.claim import Claim
    from routing.calls.call import Outcome, Postponement
    from usage.events import EventDraft

FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0
MAX_SHARED_PAUSE_SECONDS = 2.0
MAX_EXCUSED_403S = 3

CANCELLED = Failure(FailureCode.CANCELLED, "cancelled while running")
# Cancelled or expired before anything was sent: the code says all.
CANCELLED_UNSENT = Failure(FailureCode.CANCELLED, "")
EXPIRED_UNSENT = Failure(FailureCode.EXPIRED, "")


@dataclass(frozen=True, slots=True)
class Settlement:
    """What becomes of a claimed item: a final `state`, or `available` again after `wait_seconds`.

    `is_counted`: whether the attempt counts; one that is given back does not, and has no `event`. `excused_status`: the
    401 or 403 for which it is left out of `max_attempts`. `pause_seconds`: how long no item of the batch's policy is
    published. `response`: a completed item's, where it is stored with the row. `concurrency_limit`: over 0, that many
    calls of the policy run already, and no more may. `request_id`: the upstream's, empty where it gave none.
    """

    state: ItemState
    failure: Failure | None = None
    response_length: int | None = None
    response: bytes | None = field(default=None, repr=False)
    wait_seconds: float = 0.0
    waiting_reason: WaitingReason | None = None
    is_counted: bool = True
    excused_status: int | None = None
    pause_seconds: float = 0.0
    concurrency_limit: int = 0
    event: EventDraft | None = None
    request_id: str = ""


def settle_completed(
    *, response_length: int, response: bytes | None = None, event: EventDraft | None, request_id: str = ""
) -> Settlement:
    return Settlement(
        ItemState.COMPLETED,
        response_length=response_length,
        response=response,
        event=event,
        request_id=request_id,
    )


def settle_failure(claim: Claim, failure: Failure, event: EventDraft | None) -> Settlement:
    """Settle an attempt that gave no usable response: retried while attempts are left, else discarded."""
    if failure.code == FailureCode.CANCELLED:
        return Settlement(ItemState.CANCELLED, failure=CANCELLED, event=event)
    if not failure.retryable or claim.counted_attempts >= claim.max_attempts:
        return Settlement(ItemState.DISCARDED, failure=failure, event=event)
    if failure.code == FailureCode.WORKER_LOST:
        return Settlement(ItemState.AVAILABLE, waiting_reason=WaitingReason.WORKER_STOPPED, event=event)
    return Settlement(
        ItemState.AVAILABLE,
        wait_seconds=_retry_wait_seconds(claim, failure),
        waiting_reason=WaitingReason.RETRY,
        event=event,
    )


def settle_key_rejected(claim: Claim, outcome: Outcome, event: EventDraft | None) -> Settlement:
    """Settle an attempt whose host key was rejected: an excused one waits as for open breakers, but has an event."""
    rejection, failure = outcome.host_key_rejected, outcome.failure
    if rejection is None or failure is None:
        raise ValueError("no host key was rejected")
    may_wait = rejection.has_other_keys or claim.on_rate_limit == RateLimitMode.WAIT
    if not may_wait or (failure.upstream_status == 403 and claim.excused_403 >= MAX_EXCUSED_403S):
        return settle_failure(claim, failure, event)
    return Settlement(
        ItemState.AVAILABLE,
        wait_seconds=rejection.seconds,
        waiting_reason=WaitingReason.BREAKER_OPEN,
        excused_status=failure.upstream_status,
        pause_seconds=min(rejection.seconds, MAX_SHARED_PAUSE_SECONDS),
        event=event,
    )


def settle_postponed(claim: Claim, outcome: Outcome, event: EventDraft | None) -> Settlement:
    """Settle an attempt that sent nothing. The batch's `on_rate_limit` decides whether it waits or fails; where the
    postponement is our own outage, or passes by itself, it always waits."""
    postponement, failure = outcome.postponement, outcome.failure
    if postponement is None or failure is None:
        raise ValueError("not a postponed outcome")
    if claim.on_rate_limit == RateLimitMode.WAIT or postponement.must_wait:
        return replace(
            give_back(reason=postponement.reason, seconds=postponement.seconds),
            pause_seconds=_pause_seconds(postponement),
            concurrency_limit=postponement.concurrency_limit,
        )
    return settle_failure(claim, failure, event)


def give_back(*, reason: WaitingReason | None, seconds: float = 0.0) -> Settlement:
    """Make the item available again without counting the attempt: nothing was sent."""
    return Settlement(ItemState.AVAILABLE, wait_seconds=seconds, waiting_reason=reason, is_counted=False)


def as_cancelled(settlement: Settlement) -> Settlement:
    """Settle as cancelled an attempt that would have been retried or given back, had its batch not been cancelled."""
    event = settlement.event
    # What a lost worker has sent is unknown, and it may still report it: its event stays what it is.
    if event and event.error_kind != FailureCode.WORKER_LOST:
        event = replace(event, error_kind=FailureCode.CANCELLED)
    failure = CANCELLED if settlement.is_counted else CANCELLED_UNSENT
    return replace(settlement, state=ItemState.CANCELLED, failure=failure, waiting_reason=None, event=event)


def _pause_seconds(postponement: Postponement) -> float:
    # Calls of the policy that another host key may admit must not be held up by this one for long.
    if postponement.whole_policy:
        return postponement.seconds
    return min(postponement.seconds, MAX_SHARED_PAUSE_SECONDS)


def _retry_wait_seconds(claim: Claim, failure: Failure) -> float:
    if failure.retry_after_seconds is not None:
        return failure.retry_after_seconds
    return backoff_seconds(claim.counted_attempts, jitter=random.random())  # noqa: S311 -- spreads load, guards nothing


def backoff_seconds(attempt: int, *, jitter: float) -> float:
    """Backoff with full jitter: `jitter` (0 to 1) times 1 s, doubled with each attempt, at most 60 s.

    >>> [backoff_seconds(attempt, jitter=1.0) for attempt in (1, 2, 3, 7, 10)]
    [1.0, 2.0, 4.0, 60.0, 60.0]
    """
    return jitter * min(FIRST_BACKOFF_SECONDS * 2.0 ** (attempt - 1), MAX_BACKOFF_SECONDS)
