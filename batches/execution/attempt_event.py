"""The attempt's part of a usage event, and the events of attempts that ended without a call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from batches.execution.retry_policy import settle_failure
from relaybatch.db.clock import database_now
from routing.calls.call import Caller, Outcome, Target
from routing.calls.failures import Failure, FailureCode
from routing.credentials.recheck import caller_snapshot
from usage.events import Attempt, EventDraft, draft_event

if TYPE_CHECKING:
    from batches.execution.claim import Claim
    from batches.execution.retry_policy import Settlement

WORKER_LOST = Failure(
    FailureCode.WORKER_LOST, "worker lost: the process that ran this item died", retryable=True
)


def attempt_info(claim: Claim) -> Attempt:
    return Attempt(
        source="batch",
        number=claim.attempt,
        batch_id=claim.batch_id,
        public_batch_id=claim.public_batch_id,
        item_idx=claim.idx,
        custom_id=claim.custom_id,
    )


def event_without_send(claim: Claim, *, duration_ms: int, failure: Failure, sent: bool) -> EventDraft:
    """Draft the event of an attempt that ended outside `metered_send`: rejected before it, or lost with its worker."""
    names = caller_snapshot(claim.caller)
    target = Target(adapter=claim.shape, policy=names.policy, project=names.project, team=names.team)
    outcome = Outcome(target=target, failure=failure, sent=sent)
    return draft_event(
        caller=claim.caller, outcome=outcome, attempt=attempt_info(claim), duration_ms=duration_ms
    )


def worker_lost_settlement(claim: Claim) -> Settlement:
    """Settle the attempt of a lost worker. Whether it sent anything is unknown, and so are its tokens: the event is
    unpriced."""
    duration_ms = int((database_now() - claim.started_at).total_seconds() * 1000)
    event = event_without_send(claim, duration_ms=duration_ms, failure=WORKER_LOST, sent=True)
    return settle_failure(claim, WORKER_LOST, event)


def minimal_worker_lost_event(claim: Claim) -> EventDraft:
    """Draft the event of a lost worker's attempt with no value in it that the database could reject."""
    nobody = Caller(
        owner=claim.owner,
        credential_kind="",
        credential_id="",
        principal_kind="",
        principal_id="",
        policy_id=claim.policy_id,
        project_id=None,
        team_id=None,
    )
    outcome = Outcome(target=Target(), failure=WORKER_LOST, sent=True)
    attempt = replace(attempt_info(claim), custom_id=None)
    return draft_event(caller=nobody, outcome=outcome, attempt=attempt, duration_ms=0)
