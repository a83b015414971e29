"""What becomes of an item after an attempt: a pure decision, without a clock or a row.

| outcome | attempts left | none left |
| --- | --- | --- |
| a usable answer | completed | completed |
| its line was cut by a cancel | cancelled | cancelled |
| a failure that may end differently next time | available, after a wait | discarded |
| its worker stopped or died | available, at once | discarded |
| nothing sent, and it may be sent later | given back: available, no attempt counted | the same |
| our host key was refused (401, 403) | excused: available, when a key may be usable | the same |
| any other failure | discarded | discarded |

Attempts left: `max_attempts` is compared with the attempts that were not excused. A refusal is excused only while
another key is left or the batch waits, and 403, which may be about the item, three times; else it is any other failure.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from batches.execution.settle import CANCELLED, Settlement
from batches.models import Batch, ItemState

if TYPE_CHECKING:
    from batches.execution.claim import Claim
    from routing.upstream.call import Outcome, Postponement
    from routing.upstream.failures import Failure
    from usage.events import EventDraft

FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0
MAX_SHARED_PAUSE_SECONDS = 2.0
MAX_EXCUSED_403S = 3


def settle_failure(claim: Claim, failure: Failure, event: EventDraft | None) -> Settlement:
    """The settlement of an attempt that did not give a usable answer."""
    if failure.code == CANCELLED.code:
        return Settlement(ItemState.CANCELLED, failure=CANCELLED, event=event)
    if not failure.retryable or claim.counted_attempts >= claim.max_attempts:
        return Settlement(ItemState.DISCARDED, failure=failure, event=event)
    if failure.code == "worker_lost":
        return Settlement(ItemState.AVAILABLE, waiting_reason="worker_stopped", event=event)
    return Settlement(
        ItemState.AVAILABLE, wait_seconds=_wait_seconds(claim, failure), waiting_reason="retry", event=event
    )


def settle_key_rejected(claim: Claim, outcome: Outcome, event: EventDraft | None) -> Settlement:
    """Our host key was refused: the item waits as before a gate whose keys are closed, though with an event."""
    key_refused, failure = outcome.host_key_rejected, outcome.failure
    if key_refused is None or failure is None:
        raise ValueError("no host key was refused")
    may_wait = key_refused.has_other_keys or claim.on_rate_limit == Batch.RateLimitMode.WAIT
    if not may_wait or (failure.upstream_status == 403 and claim.excused_403 >= MAX_EXCUSED_403S):
        return settle_failure(claim, failure, event)
    return Settlement(
        ItemState.AVAILABLE,
        wait_seconds=key_refused.seconds,
        waiting_reason="breaker_open",
        excused_status=failure.upstream_status,
        pause_seconds=min(key_refused.seconds, MAX_SHARED_PAUSE_SECONDS),
        event=event,
    )


def settle_postponed(claim: Claim, outcome: Outcome, event: EventDraft | None) -> Settlement:
    """Nothing was sent. The batch's `on_rate_limit` says whether to wait, but for what is no fault of the call."""
    postponement, failure = outcome.postponement, outcome.failure
    if postponement is None or failure is None:
        raise ValueError("not a postponed outcome")
    if claim.on_rate_limit == Batch.RateLimitMode.WAIT or postponement.must_wait:
        return replace(
            give_back(reason=postponement.reason, seconds=postponement.seconds),
            pause_seconds=_pause_seconds(postponement),
            at_once=postponement.concurrency_limit,
        )
    return settle_failure(claim, failure, event)


def give_back(*, reason: str, seconds: float = 0.0) -> Settlement:
    return Settlement(ItemState.AVAILABLE, wait_seconds=seconds, waiting_reason=reason, counted=False)


def _pause_seconds(postponement: Postponement) -> float:
    """Calls of the policy that another host key may let pass are not held up by this one for long."""
    if postponement.whole_policy:
        return postponement.seconds
    return min(postponement.seconds, MAX_SHARED_PAUSE_SECONDS)


def _wait_seconds(claim: Claim, failure: Failure) -> float:
    if failure.retry_after_seconds is not None:
        return failure.retry_after_seconds
    return backoff_seconds(claim.counted_attempts, jitter=random.random())  # noqa: S311 -- spreads load, guards nothing


def backoff_seconds(attempt: int, *, jitter: float) -> float:
    """Full jitter: `spread` (0 to 1) of 1 s, doubled with each attempt, of 60 s at most.

    >>> [backoff_seconds(attempt, spread=1.0) for attempt in (1, 2, 3, 7, 10)]
    [1.0, 2.0, 4.0, 60.0, 60.0]
    """
    return jitter * min(FIRST_BACKOFF_SECONDS * 2.0 ** (attempt - 1), MAX_BACKOFF_SECONDS)
