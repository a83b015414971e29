"""What becomes of an item after an attempt, as a table: a row of retry_policy's docstring is a row here."""

from __future__ import annotations

import subprocess
import sys
import uuid
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from batches.execution.claim import Claim
from batches.execution.retry_policy import (
    CANCELLED,
    CANCELLED_UNSENT,
    Settlement,
    as_cancelled,
    backoff_seconds,
    give_back,
    settle_completed,
    settle_failure,
    settle_key_rejected,
    settle_postponed,
)
from batches.states import ItemState
from routing.calls.call import HostKeyRejection, Outcome, Postponement, Target
from routing.calls.failures import Failure, FailureCode
from routing.calls.waiting_reason import WaitingReason
from tests.support.servers.deployment import ROOT

FREE_AT_ONCE = HostKeyRejection(seconds=0.0, has_other_keys=True)
OTHERS_CLOSED = HostKeyRejection(seconds=40.0, has_other_keys=True)
ALL_REJECTED = HostKeyRejection(seconds=60.0, has_other_keys=False)


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
        is_only_item=False,
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
        is_cancelled=False,
        is_overdue=False,
        has_breaker_pause=False,
    )


LAST = claim(max_attempts=1)
NOT_LAST = claim(max_attempts=2)


def failing(code: FailureCode, *, retryable: bool) -> Failure:
    return Failure(code, "x", retryable=retryable)


def failed(claimed: Claim, code: FailureCode, *, retryable: bool = True) -> Settlement:
    return settle_failure(claimed, failing(code, retryable=retryable), None)


def postponed(claimed: Claim, *, must_wait: bool = True) -> Settlement:
    postponement = Postponement(WaitingReason.REDIS_AWAY, 3.0, must_wait=must_wait)
    failure = failing(FailureCode.NO_HEALTHY_KEYS, retryable=False)
    return settle_postponed(
        claimed, Outcome(target=Target(), failure=failure, postponement=postponement), None
    )


def rejected(status: int, host_key_rejected: HostKeyRejection) -> Outcome:
    failure = Failure(
        FailureCode.UPSTREAM_STATUS, f"batch item: upstream status {status}", upstream_status=status
    )
    return Outcome(
        target=Target(), failure=failure, status=status, sent=True, host_key_rejected=host_key_rejected
    )


def key_rejected(claimed: Claim, status: int, rejection: HostKeyRejection = FREE_AT_ONCE) -> Settlement:
    return settle_key_rejected(claimed, rejected(status, rejection), None)


USABLE = settle_completed(response_length=2, event=None)


@pytest.mark.parametrize(
    ("outcome", "attempts_left", "none_left"),
    [
        ("a usable response", USABLE, USABLE),
        ("aborted by a cancel", *(failed(one, FailureCode.CANCELLED) for one in (NOT_LAST, LAST))),
        (
            "a failure that may end differently next time",
            *(failed(one, FailureCode.TIMEOUT) for one in (NOT_LAST, LAST)),
        ),
        (
            "its worker stopped or was lost",
            *(failed(one, FailureCode.WORKER_LOST) for one in (NOT_LAST, LAST)),
        ),
        ("nothing sent, and it may be sent later", *(postponed(one) for one in (NOT_LAST, LAST))),
        (
            "our host key was rejected (401, 403)",
            *(key_rejected(one, 401) for one in (NOT_LAST, LAST)),
        ),
        (
            "any other failure",
            *(failed(one, FailureCode.MODEL_NOT_FOUND, retryable=False) for one in (NOT_LAST, LAST)),
        ),
    ],
)
def test_the_table_of_the_docstring(outcome: str, attempts_left: Settlement, none_left: Settlement) -> None:
    assert TABLE[outcome] == (summary(attempts_left), summary(none_left))


def summary(settlement: Settlement) -> str:
    """The words of the docstring's table."""
    if settlement.state is not ItemState.AVAILABLE:
        return settlement.state.value
    if settlement.excused_status:
        return "excused: available, when a key may be usable"
    if not settlement.is_counted:
        return "given back: available, no attempt counted"
    at_once = settlement.waiting_reason is WaitingReason.WORKER_STOPPED and not settlement.wait_seconds
    return f"available, {'at once' if at_once else 'after a wait'}"


def docstring_table() -> dict[str, tuple[str, str]]:
    from batches.execution import retry_policy

    lines = [line for line in (retry_policy.__doc__ or "").splitlines() if line.startswith("| ")][2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {outcome: (left, left if none == "the same" else none) for outcome, left, none in rows}


TABLE = docstring_table()


def test_every_row_of_the_docstring_is_tested() -> None:
    marks = test_the_table_of_the_docstring.pytestmark  # type: ignore[attr-defined]
    assert [row[0] for row in marks[0].args[1]] == list(TABLE)


@pytest.mark.parametrize(
    ("claimed", "status", "key_rejection", "state", "wait_seconds", "pause_seconds"),
    [
        (claim(mode="fail"), 401, FREE_AT_ONCE, "available", 0.0, 0.0),
        (claim(mode="fail"), 401, OTHERS_CLOSED, "available", 40.0, 2.0),
        (claim(mode="fail"), 401, ALL_REJECTED, "discarded", 0.0, 0.0),
        (claim(mode="wait"), 401, FREE_AT_ONCE, "available", 0.0, 0.0),
        (claim(mode="wait"), 401, OTHERS_CLOSED, "available", 40.0, 2.0),
        (claim(mode="wait"), 401, ALL_REJECTED, "available", 60.0, 2.0),
        (claim(mode="fail"), 403, OTHERS_CLOSED, "available", 40.0, 2.0),
        (claim(mode="fail"), 403, ALL_REJECTED, "discarded", 0.0, 0.0),
        (claim(mode="wait"), 403, ALL_REJECTED, "available", 60.0, 2.0),
        # A 401 is excused every time, a 403 three times.
        (claim(attempt=100, excused=99, mode="wait"), 401, ALL_REJECTED, "available", 60.0, 2.0),
        (claim(attempt=9, excused=8, excused_403=2, mode="wait"), 403, ALL_REJECTED, "available", 60.0, 2.0),
        (claim(attempt=4, excused=3, excused_403=3, mode="wait"), 403, ALL_REJECTED, "discarded", 0.0, 0.0),
        (claim(attempt=4, excused=3, excused_403=3, mode="fail"), 403, FREE_AT_ONCE, "discarded", 0.0, 0.0),
        (claim(attempt=4, excused=3, excused_403=3, mode="wait"), 401, ALL_REJECTED, "available", 60.0, 2.0),
        # With attempts left, a rejection that is not excused is final all the same.
        (claim(max_attempts=3, mode="fail"), 401, ALL_REJECTED, "discarded", 0.0, 0.0),
    ],
)
def test_an_item_whose_host_key_was_rejected(
    claimed: Claim,
    status: int,
    key_rejection: HostKeyRejection,
    state: str,
    wait_seconds: float,
    pause_seconds: float,
) -> None:
    settlement = settle_key_rejected(claimed, rejected(status, key_rejection), None)
    assert (settlement.state, settlement.is_counted) == (state, True)
    assert (settlement.wait_seconds, settlement.pause_seconds) == (wait_seconds, pause_seconds)
    if state == "available":
        assert (settlement.excused_status, settlement.waiting_reason) == (status, "breaker_open")
        assert settlement.failure is None
    else:
        assert (settlement.excused_status, settlement.waiting_reason) == (None, None)
        assert settlement.failure
        assert settlement.failure.upstream_status == status


@pytest.mark.parametrize("code", [FailureCode.UPSTREAM_STATUS, FailureCode.WORKER_LOST])
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
    code: FailureCode, attempt: int, excused: int, max_attempts: int, state: str
) -> None:
    claimed = claim(attempt=attempt, excused=excused, max_attempts=max_attempts)
    assert failed(claimed, code).state == state


def test_the_back_off_doubles_with_the_attempts_that_count() -> None:
    fifth = claim(attempt=5, excused=3, max_attempts=9)
    waits = [failed(fifth, FailureCode.TIMEOUT).wait_seconds for _ in range(200)]
    assert max(waits) <= 2.0 == backoff_seconds(2, jitter=1.0)


def test_the_upstreams_retry_after_takes_the_place_of_the_back_off() -> None:
    failure = replace(failing(FailureCode.UPSTREAM_STATUS, retryable=True), retry_after_seconds=600.0)
    assert settle_failure(NOT_LAST, failure, None).wait_seconds == 600.0


@pytest.mark.parametrize(
    ("mode", "must_wait", "state"),
    [
        ("fail", False, "discarded"),
        ("fail", True, "available"),
        ("wait", False, "available"),
        ("wait", True, "available"),
    ],
)
def test_a_postponed_item_waits_where_its_batch_does_or_the_outage_is_ours(
    mode: str, must_wait: bool, state: str
) -> None:
    settlement = postponed(claim(mode=mode), must_wait=must_wait)
    assert (settlement.state, settlement.is_counted) == (state, state == "discarded")


@pytest.mark.parametrize(("whole_policy", "pause_seconds"), [(True, 45.0), (False, 2.0)])
def test_only_a_limit_of_the_whole_policy_pauses_it_for_long(
    whole_policy: bool, pause_seconds: float
) -> None:
    postponement = Postponement(WaitingReason.RATE_LIMIT, 45.0, whole_policy=whole_policy)
    outcome = Outcome(
        target=Target(),
        failure=failing(FailureCode.RATE_LIMITED, retryable=False),
        postponement=postponement,
    )
    settlement = settle_postponed(claim(mode="wait"), outcome, None)
    assert (settlement.wait_seconds, settlement.pause_seconds) == (45.0, pause_seconds)


def test_an_attempt_given_back_to_a_cancelled_batch_has_no_error_and_a_counted_one_has() -> None:
    given_back = give_back(reason=WaitingReason.RATE_LIMIT)
    assert as_cancelled(given_back).failure == CANCELLED_UNSENT
    retried = failed(NOT_LAST, FailureCode.TIMEOUT)
    assert as_cancelled(retried).failure == CANCELLED
    assert {as_cancelled(one).state for one in (given_back, retried)} == {"cancelled"}


def test_the_policy_imports_no_django() -> None:
    code = "import sys, batches.execution.retry_policy; sys.exit('django' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
