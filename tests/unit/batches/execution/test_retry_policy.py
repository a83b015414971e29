"""What becomes of an item whose host key was refused, as a table: nothing is asked but the claim and the outcome."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from batches.execution.claim import Claim
from batches.execution.retry_policy import backoff_seconds, settle_failure, settle_key_rejected
from routing.upstream.call import HostKeyRejection, Outcome, Target
from routing.upstream.failures import Failure

FREE_AT_ONCE = HostKeyRejection(seconds=0.0, has_other_keys=True)
OTHERS_CLOSED = HostKeyRejection(seconds=40.0, has_other_keys=True)
ALL_REFUSED = HostKeyRejection(seconds=60.0, has_other_keys=False)


def claim(
    *, attempt: int = 1, excused: int = 0, excused_403: int = 0, max_attempts: int = 1, mode: str = "fail"
) -> Claim:
    some_id = uuid.UUID(int=1)
    return Claim(
        item_id=some_id,
        idx=0,
        custom_id=None,
        attempt=attempt,
        excused=excused,
        excused_403=excused_403,
        claim_no=attempt,
        started_at=datetime(2026, 11, 1, tzinfo=UTC),
        request_offset=0,
        request_length=2,
        batch_id=some_id,
        dialect="relay",
        shape="openai",
        max_attempts=max_attempts,
        on_rate_limit=mode,
        expires_at=None,
        upstream_headers_json="{}",
        owner_id=1,
        owner="o",
        policy_id=some_id,
        project_id=None,
        team_id=None,
        principal_kind="serviceaccount",
        principal_id="p",
        credential_kind="key",
        credential_id="c",
        cancelled=False,
        overdue=False,
        breaker_pause=False,
    )


def outcome(status: int, key_refused: HostKeyRejection) -> Outcome:
    failure = Failure("upstream_status", f"batch item: upstream status {status}", upstream_status=status)
    return Outcome(target=Target(), failure=failure, status=status, sent=True, host_key_rejected=key_refused)


@pytest.mark.parametrize(
    ("claimed", "status", "key_refused", "state", "wait_seconds", "pause_seconds"),
    [
        (claim(mode="fail"), 401, FREE_AT_ONCE, "available", 0.0, 0.0),
        (claim(mode="fail"), 401, OTHERS_CLOSED, "available", 40.0, 2.0),
        (claim(mode="fail"), 401, ALL_REFUSED, "discarded", 0.0, 0.0),
        (claim(mode="wait"), 401, FREE_AT_ONCE, "available", 0.0, 0.0),
        (claim(mode="wait"), 401, OTHERS_CLOSED, "available", 40.0, 2.0),
        (claim(mode="wait"), 401, ALL_REFUSED, "available", 60.0, 2.0),
        (claim(mode="fail"), 403, OTHERS_CLOSED, "available", 40.0, 2.0),
        (claim(mode="fail"), 403, ALL_REFUSED, "discarded", 0.0, 0.0),
        (claim(mode="wait"), 403, ALL_REFUSED, "available", 60.0, 2.0),
        # However often before: of 401 as often as it comes, of 403 three times.
        (claim(attempt=100, excused=99, mode="wait"), 401, ALL_REFUSED, "available", 60.0, 2.0),
        (claim(attempt=9, excused=8, excused_403=2, mode="wait"), 403, ALL_REFUSED, "available", 60.0, 2.0),
        (claim(attempt=4, excused=3, excused_403=3, mode="wait"), 403, ALL_REFUSED, "discarded", 0.0, 0.0),
        (claim(attempt=4, excused=3, excused_403=3, mode="fail"), 403, FREE_AT_ONCE, "discarded", 0.0, 0.0),
        (claim(attempt=4, excused=3, excused_403=3, mode="wait"), 401, ALL_REFUSED, "available", 60.0, 2.0),
        # With attempts left, a refusal that is not excused is final all the same.
        (claim(max_attempts=3, mode="fail"), 401, ALL_REFUSED, "discarded", 0.0, 0.0),
    ],
)
def test_an_item_whose_host_key_was_refused(
    claimed: Claim,
    status: int,
    key_refused: HostKeyRejection,
    state: str,
    wait_seconds: float,
    pause_seconds: float,
) -> None:
    settlement = settle_key_rejected(claimed, outcome(status, key_refused), None)
    assert (settlement.state, settlement.counted) == (state, True)
    assert (settlement.wait_seconds, settlement.pause_seconds) == (wait_seconds, pause_seconds)
    if state == "available":
        assert (settlement.excused_status, settlement.waiting_reason) == (status, "breaker_open")
        assert settlement.failure is None
    else:
        assert (settlement.excused_status, settlement.waiting_reason) == (None, "")
        assert settlement.failure
        assert settlement.failure.upstream_status == status


@pytest.mark.parametrize("code", ["upstream_status", "worker_lost"])
@pytest.mark.parametrize(
    ("attempt", "excused", "max_attempts", "state"),
    [
        (1, 0, 1, "discarded"),
        (2, 1, 1, "discarded"),
        (2, 1, 2, "available"),
        (5, 4, 2, "available"),
        (6, 4, 2, "discarded"),
        (3, 0, 3, "discarded"),
    ],
)
def test_excused_attempts_are_left_out_of_what_a_failure_may_use_up(
    code: str, attempt: int, excused: int, max_attempts: int, state: str
) -> None:
    claimed = claim(attempt=attempt, excused=excused, max_attempts=max_attempts)
    assert settle_failure(claimed, Failure(code, "x", retryable=True), None).state == state


def test_the_back_off_doubles_with_the_attempts_that_count() -> None:
    fifth = claim(attempt=5, excused=3, max_attempts=9)
    waits = [
        settle_failure(fifth, Failure("timeout", "x", retryable=True), None).wait_seconds for _ in range(200)
    ]
    assert max(waits) <= 2.0 == backoff_seconds(2, jitter=1.0)
