"""Claims and settles against real rows: one winner, one end, and nothing lost between the two."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import connection

from batches.completion.batch_end import LOCK_EXCLUSIVE
from batches.completion.cancel import cancel_batch
from batches.completion.delete import delete_batch
from batches.completion.expire import expire_batch
from batches.execution.attempt_event import worker_lost_settlement
from batches.execution.claim import Claim, claim_item, claim_unlocked
from batches.execution.retry_policy import Settlement, settle_failure
from batches.execution.settling.settle import settle
from batches.models import Batch, BatchItem, ItemState
from batches.sweeper.cleanup import Cleanup
from relaybatch.ids import uuid7
from routing.calls.call import Outcome, Target, Tokens
from routing.calls.failures import Failure, FailureCode
from routing.calls.waiting_reason import WaitingReason
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.run.races import run_concurrently
from tests.support.servers.deployment import deployment_environment
from usage.events import draft_event
from usage.models import UsageEvent, UsageTotal
from usage.reconcile import compare

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from usage.events import EventDraft

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def catalog() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def claims_of(batch: Batch) -> list[Claim]:
    items = BatchItem.objects.of(batch).values_list("id", flat=True)
    claims = [claim_item(item_id, worker_id=uuid7()) for item_id in items]
    return [claim for claim in claims if claim]


def event_of(claim: Claim, **reported: Any) -> EventDraft:
    from batches.execution.attempt_event import attempt_info

    said: dict[str, Any] = {"status": 200, "tokens": Tokens(input=5, output=7)} | reported
    outcome = Outcome(target=Target(), sent=True, **said)
    return draft_event(caller=claim.caller, outcome=outcome, attempt=attempt_info(claim), duration_ms=3)


def completed(claim: Claim) -> Settlement:
    return Settlement(ItemState.COMPLETED, response_length=2, event=event_of(claim))


def states(batch: Batch) -> dict[str, int]:
    return BatchItem.objects.counts_by_batch([batch.id])[batch.id]


def test_a_group_of_claims_waits_for_no_row_that_somebody_has_locked(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, chat_body(), chat_body())
    locked, free = BatchItem.objects.of(batch).values_list("id", flat=True)
    with psycopg.connect(deployment_environment()["DATABASE_URL"]) as other:
        other.execute("SELECT FROM batches_batchitem WHERE id = %s FOR UPDATE", [locked])
        assert set(claim_unlocked([locked, free, uuid7()], worker_id=uuid7())) == {free}
    assert claim_item(locked, worker_id=uuid7())
    assert not claim_unlocked([locked, free], worker_id=uuid7())


def test_of_eight_claims_of_one_item_one_wins(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    item_id = BatchItem.objects.get(batch_id=batch.id).id
    claims = run_concurrently([functools.partial(claim_item, item_id, worker_id=uuid7()) for _ in range(8)])
    assert len([claim for claim in claims if claim]) == 1
    item = BatchItem.objects.get(id=item_id)
    assert (item.state, item.claim_no, item.attempt) == ("running", 1, 1)


def test_the_last_items_settled_at_the_same_moment_end_the_batch_once(catalog: SimpleNamespace) -> None:
    for _ in range(20):
        batch = submit(catalog, *[chat_body()] * 4)
        claims = claims_of(batch)
        settled = run_concurrently([functools.partial(settle, claim, completed(claim)) for claim in claims])
        batch.refresh_from_db()
        assert settled == [True] * 4
        assert batch.ended_at is not None
        assert batch.final_counts == {"completed": 4}
    assert UsageEvent.objects.count() == 80


def test_items_that_still_wait_keep_the_batch_open(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, chat_body(), chat_body())
    first = claims_of(batch)[0]
    assert settle(first, completed(first))
    batch.refresh_from_db()
    assert batch.ended_at is None


def test_a_lost_item_is_left_alone_and_its_usage_kept_as_late(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    claim = claims_of(batch)[0]
    lost = Failure(FailureCode.WORKER_LOST, "worker lost", retryable=True)
    assert settle(claim, settle_failure(claim, lost, event_of(claim)))
    assert not settle(claim, completed(claim))
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.error_code, item.response_length) == ("discarded", "worker_lost", None)
    assert sorted(UsageEvent.objects.values_list("late", flat=True)) == [False, True]


def test_a_retry_of_an_item_that_was_lost_locks_the_batch_once(catalog: SimpleNamespace) -> None:
    """Only that of a cancelled batch is settled again, as cancelled."""
    batch = submit(catalog, max_attempts=3)
    claim = claims_of(batch)[0]
    assert settle(claim, worker_lost_settlement(claim))
    statements: list[str] = []

    def note(execute: Any, statement: str, *rest: Any) -> Any:
        statements.append(statement)
        return execute(statement, *rest)

    with connection.execute_wrapper(note):
        assert not settle(claim, settle_failure(claim, REFUSED, event_of(claim)))
    assert statements.count(LOCK_EXCLUSIVE) == 1
    assert states(batch) == {"available": 1}


REFUSED = Failure(FailureCode.UPSTREAM_STATUS, "upstream status 500", retryable=True)


@pytest.mark.parametrize(
    ("reported", "late"),
    [
        ({"tokens": Tokens(input=0, output=0, cache_read=9)}, 1),
        ({"tokens": Tokens(input=0, output=0, cache_write=9)}, 1),
        ({"tokens": None, "upstream_cost_nanos": 7, "status": 500, "failure": REFUSED}, 1),
        ({"tokens": None}, 1),
        ({"tokens": None, "status": 500, "failure": REFUSED}, 0),
        ({"tokens": None, "status": 0, "failure": Failure(FailureCode.WORKER_LOST, "worker lost")}, 0),
    ],
)
def test_whatever_a_lost_workers_call_used_is_kept_as_late(
    catalog: SimpleNamespace, reported: dict[str, Any], late: int
) -> None:
    batch = submit(catalog)
    claim = claims_of(batch)[0]
    assert settle(claim, worker_lost_settlement(claim))
    assert not settle(claim, replace(completed(claim), event=event_of(claim, **reported)))
    events = UsageEvent.objects.filter(late=True)
    assert events.count() == late
    assert [event.upstream_cost_nanos for event in events] == [reported.get("upstream_cost_nanos")] * late
    assert not compare().differences


def test_late_usage_keeps_the_error_of_an_attempt_that_would_have_been_retried(
    catalog: SimpleNamespace,
) -> None:
    batch = submit(catalog, max_attempts=2)
    claim = claims_of(batch)[0]
    assert settle(claim, worker_lost_settlement(claim))
    failure = Failure(FailureCode.TIMEOUT, "timed out", retryable=True)
    event = event_of(claim, tokens=None, failure=failure)
    assert not settle(claim, settle_failure(claim, failure, event))
    assert UsageEvent.objects.get(late=True).error_kind == "timeout"


def test_late_usage_of_a_batch_that_is_gone_leaves_it_no_total(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    claim = claims_of(batch)[0]
    assert settle(
        claim, settle_failure(claim, Failure(FailureCode.WORKER_LOST, "worker lost"), event_of(claim))
    )
    delete_batch(Batch.objects.get(id=batch.id))
    Cleanup().run()
    assert not Batch.objects.exists()
    assert not settle(claim, completed(claim))
    assert sorted(UsageEvent.objects.values_list("late", flat=True)) == [False, True]
    assert not UsageTotal.objects.filter(scope__startswith="batch:").exists()
    assert not compare().differences


def test_late_usage_and_the_removal_of_its_batch_at_once_leave_no_total(catalog: SimpleNamespace) -> None:
    for _ in range(10):
        batch = submit(catalog)
        claim = claims_of(batch)[0]
        assert settle(
            claim, settle_failure(claim, Failure(FailureCode.WORKER_LOST, "worker lost"), event_of(claim))
        )
        delete_batch(Batch.objects.get(id=batch.id))
        both: list[Callable[[], object]] = [
            Cleanup().run,
            functools.partial(settle, claim, completed(claim)),
        ]
        run_concurrently(both)
    assert UsageEvent.objects.filter(late=True).count() == 10
    assert not UsageTotal.objects.filter(scope__startswith="batch:").exists()


def test_settling_again_after_a_commit_that_was_not_heard_adds_nothing(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    claim = claims_of(batch)[0]
    settlement = completed(claim)
    assert settle(claim, settlement)
    assert not settle(claim, settlement)
    assert UsageEvent.objects.count() == 1


def test_a_retry_makes_the_item_wait_and_keeps_its_attempt(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, max_attempts=3)
    claim = claims_of(batch)[0]
    failure = Failure(FailureCode.UPSTREAM_STATUS, "x", retryable=True, retry_after_seconds=600)
    assert settle(claim, settle_failure(claim, failure, event_of(claim)))
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.attempt, item.waiting_reason) == ("available", 1, "retry")
    assert item.not_before is not None
    assert claim_item(item.id, worker_id=uuid7()) is None


def test_an_item_given_back_has_not_used_an_attempt_but_its_fence_has_risen(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    claim = claims_of(batch)[0]
    given_back = Settlement(ItemState.AVAILABLE, waiting_reason=WaitingReason.RATE_LIMIT, is_counted=False)
    assert settle(claim, given_back)
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.attempt, item.claim_no) == ("available", 0, 1)
    assert not UsageEvent.objects.exists()


def test_a_retry_never_waits_beyond_the_expiry(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, max_attempts=3, lifetime_seconds=60)
    claim = claims_of(batch)[0]
    failure = Failure(FailureCode.UPSTREAM_STATUS, "x", retryable=True, retry_after_seconds=600)
    assert settle(claim, settle_failure(claim, failure, event_of(claim)))
    assert BatchItem.objects.get(batch_id=batch.id).not_before == batch.expires_at


def test_a_retry_of_a_cancelled_batch_is_cancelled_instead(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, max_attempts=3)
    claim = claims_of(batch)[0]
    cancel_batch(batch)
    failure = Failure(FailureCode.UPSTREAM_STATUS, "x", retryable=True)
    assert settle(claim, settle_failure(claim, failure, event_of(claim)))
    batch.refresh_from_db()
    assert states(batch) == {"cancelled": 1}
    assert batch.ended_at is not None
    assert UsageEvent.objects.get().error_kind == "cancelled"


def test_a_lost_worker_of_a_cancelled_batch_stays_lost_in_the_event(catalog: SimpleNamespace) -> None:
    """Whether it has sent anything is unknown, and what it used comes late."""
    batch = submit(catalog, max_attempts=3)
    claim = claims_of(batch)[0]
    cancel_batch(batch)
    assert settle(claim, worker_lost_settlement(claim))
    assert states(batch) == {"cancelled": 1}
    assert UsageEvent.objects.get().error_kind == "worker_lost"


def test_an_item_given_back_to_a_cancelled_batch_was_not_cancelled_while_running(
    catalog: SimpleNamespace,
) -> None:
    batch = submit(catalog)
    claim = claims_of(batch)[0]
    cancel_batch(batch)
    assert settle(
        claim, Settlement(ItemState.AVAILABLE, waiting_reason=WaitingReason.RATE_LIMIT, is_counted=False)
    )
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.error_code, item.error, item.attempt) == ("cancelled", "cancelled", "", 0)


def test_cancel_ends_what_waits_and_leaves_what_runs(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, chat_body(), chat_body(), chat_body())
    first = BatchItem.objects.of(batch).values_list("id", flat=True)[0]
    claim = claim_item(first, worker_id=uuid7())
    assert claim
    cancel_batch(batch)
    assert states(batch) == {"cancelled": 2, "running": 1}
    assert settle(claim, completed(claim))
    batch.refresh_from_db()
    assert batch.final_counts == {"cancelled": 2, "completed": 1}
    assert batch.processing_status == "ended"


@pytest.mark.parametrize("final", ["cancelled", "expired"])
def test_an_item_that_ends_while_it_waits_for_another_attempt_says_nothing_of_the_last_one(
    catalog: SimpleNamespace, final: str
) -> None:
    batch = submit(catalog, max_attempts=3)
    BatchItem.objects.of(batch).update(
        error_code="upstream_status", error="x", upstream_status=500, upstream_error=b"x"
    )
    cancel_batch(batch) if final == "cancelled" else expire_batch(batch.id)
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.error_code, item.error) == (final, final, "")
    assert (item.upstream_status, item.upstream_error) == (None, None)


def test_cancelling_a_batch_that_has_ended_changes_nothing(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    claim = claims_of(batch)[0]
    settle(claim, completed(claim))
    cancel_batch(batch)
    batch.refresh_from_db()
    assert batch.cancel_initiated_at is None
    assert batch.final_counts == {"completed": 1}


def test_a_cancel_at_the_moment_of_the_last_settle_leaves_every_item_in_one_final_state(
    catalog: SimpleNamespace,
) -> None:
    for _ in range(20):
        batch = submit(catalog, chat_body(), chat_body(), max_attempts=2)
        first = BatchItem.objects.of(batch).values_list("id", flat=True)[0]
        claim = claim_item(first, worker_id=uuid7())
        assert claim
        retry = settle_failure(
            claim, Failure(FailureCode.UPSTREAM_STATUS, "x", retryable=True), event_of(claim)
        )
        calls: list[Callable[[], bool | None]] = [
            functools.partial(settle, claim, retry),
            functools.partial(cancel_batch, batch),
        ]
        run_concurrently(calls)
        batch.refresh_from_db()
        assert batch.ended_at is not None
        assert batch.final_counts == {"cancelled": 2}


def test_expiry_makes_waiting_items_final_and_lets_running_ones_finish(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, chat_body(), chat_body())
    first = BatchItem.objects.of(batch).values_list("id", flat=True)[0]
    claim = claim_item(first, worker_id=uuid7())
    assert claim
    expire_batch(batch.id)
    assert states(batch) == {"expired": 1, "running": 1}
    settle(claim, completed(claim))
    batch.refresh_from_db()
    assert batch.final_counts == {"completed": 1, "expired": 1}
