"""Attempts settled together: each keeps its own fate, and none waits for another's batch."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

from batches.completion.batch_end import LOCK_EXCLUSIVE, lock_key
from batches.completion.cancel import cancel_batch
from batches.execution.attempt_event import attempt_info
from batches.execution.claim import Claim, claim_item
from batches.execution.retry_policy import Settlement, give_back, settle_completed, settle_failure
from batches.execution.settling import settle as settling
from batches.execution.settling.settle import settle
from batches.execution.settling.settle_fallbacks import settle_with_fallbacks
from batches.models import Batch, BatchItem, ItemResponse
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

if TYPE_CHECKING:
    from types import SimpleNamespace

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = 6


@pytest.fixture
def catalog() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def claims_of(batch: Batch, *, count: int = ITEMS) -> list[Claim]:
    """Claim the first items; the last one still waits, unpublished, so that none of them is the batch's last."""
    items = list(BatchItem.objects.of(batch).values_list("id", flat=True))
    claims = [claim_item(item_id, worker_id=uuid7()) for item_id in items[:count]]
    BatchItem.objects.filter(id=items[-1]).update(published_at=None)
    return [claim for claim in claims if claim]


def completed(claim: Claim, *, text: str = "") -> Settlement:
    outcome = Outcome(
        target=Target(requested_model=text), sent=True, status=200, tokens=Tokens(input=5, output=7)
    )
    event = draft_event(caller=claim.caller, outcome=outcome, attempt=attempt_info(claim), duration_ms=3)
    body = b'{"idx": %d}' % claim.idx
    return settle_completed(response_length=len(body), response=body, event=event)


def refused(claim: Claim) -> Settlement:
    """A settlement that no row can hold: PostgreSQL's text has no NUL."""
    failure = Failure(FailureCode.UPSTREAM_STATUS, "NUL: \x00")
    return settle_failure(claim, failure, completed(claim).event)


def states(batch: Batch) -> dict[str, int]:
    return BatchItem.objects.counts_by_batch([batch.id])[batch.id]


def test_a_group_of_several_batches_is_settled_in_one_transaction(catalog: SimpleNamespace) -> None:
    batches = [submit(catalog, *[chat_body()] * 4) for _ in range(2)]
    claims = [claim for batch in batches for claim in claims_of(batch, count=3)]
    assert settling._settle_together([(claim, completed(claim)) for claim in claims]) == [True] * 6
    assert [states(batch) for batch in batches] == [{"completed": 3, "available": 1}] * 2
    for claim in claims:
        assert bytes(ItemResponse.objects.get(item_id=claim.item_id).body) == b'{"idx": %d}' % claim.idx
    assert UsageEvent.objects.count() == 6
    totals = {total.scope: total.requests for total in UsageTotal.objects.filter(scope__startswith="batch:")}
    assert totals == {f"batch:{batch.id}": 3 for batch in batches}


def test_each_of_a_group_has_its_own_end(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, *[chat_body()] * (ITEMS + 1), max_attempts=2)
    first, second, third, fourth, *_ = claims = claims_of(batch)
    failure = Failure(FailureCode.UPSTREAM_STATUS, "batch item: upstream status 500", upstream_status=500)
    settlements = [
        completed(first),
        settle_failure(second, replace(failure, upstream_error=b"\xff\x00 half"), completed(second).event),
        settle_failure(
            third, replace(failure, retryable=True, retry_after_seconds=900.0), completed(third).event
        ),
        give_back(reason=WaitingReason.WORKER_STOPPED),
    ]
    assert settling._settle_together(list(zip(claims, settlements, strict=False))) == [True] * 4
    rows = [BatchItem.objects.get(id=claim.item_id) for claim in (first, second, third, fourth)]
    assert [(row.state, row.attempt, row.waiting_reason) for row in rows] == [
        ("completed", 1, ""),
        ("discarded", 1, ""),
        ("available", 1, "retry"),
        ("available", 0, "worker_stopped"),
    ]
    assert bytes(rows[1].upstream_error or b"") == b"\xff\x00 half"
    assert rows[1].upstream_status == 500
    assert rows[2].not_before is not None
    assert UsageEvent.objects.count() == 3


def test_one_row_that_the_database_rejects_does_not_fail_the_others(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, *[chat_body()] * (ITEMS + 1))
    claims = claims_of(batch)
    settlements = [refused(claim) if claim.idx == 2 else completed(claim) for claim in claims]
    assert settling._settle_together(list(zip(claims, settlements, strict=True))) == [False] * ITEMS
    assert states(batch) == {"running": ITEMS, "available": 1}
    run_concurrently(
        [
            functools.partial(settle_with_fallbacks, claim, settlement)
            for claim, settlement in zip(claims, settlements, strict=True)
        ]
    )
    assert states(batch) == {"completed": ITEMS - 1, "discarded": 1, "available": 1}
    assert BatchItem.objects.get(state="discarded").error_code == "worker_lost"
    assert UsageEvent.objects.count() == ITEMS


def test_a_batch_that_somebody_holds_does_not_make_the_others_wait(catalog: SimpleNamespace) -> None:
    held, free = (submit(catalog, *[chat_body()] * 3) for _ in range(2))
    claims = [*claims_of(held, count=2), *claims_of(free, count=2)]
    with psycopg.connect(deployment_environment()["DATABASE_URL"]) as other:
        other.execute(LOCK_EXCLUSIVE, [lock_key(held.id)])
        settled = settling._settle_together([(claim, completed(claim)) for claim in claims])
    assert settled == [False, False, True, True]
    assert all(settle(claim, completed(claim)) for claim in claims[:2])
    assert states(held) == states(free) == {"completed": 2, "available": 1}


def test_a_lost_item_of_a_group_writes_no_response_and_a_late_event(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, *[chat_body()] * 4)
    lost, kept, _ = claims_of(batch, count=3)
    assert settle(lost, give_back(reason=WaitingReason.WORKER_STOPPED))
    BatchItem.objects.filter(id=lost.item_id).update(state="running", claim_no=2, worker_id=uuid7())
    assert settling._settle_together([(claim, completed(claim)) for claim in (lost, kept)]) == [False, True]
    assert not settle(lost, completed(lost))
    assert list(ItemResponse.objects.values_list("item_id", flat=True)) == [kept.item_id]
    assert dict(UsageEvent.objects.values_list("item_idx", "late")) == {lost.idx: True, kept.idx: False}


def test_items_of_a_cancelled_batch_that_would_wait_become_cancelled(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, *[chat_body()] * 3)
    claims = claims_of(batch, count=2)
    cancel_batch(batch)
    run_concurrently(
        [functools.partial(settle, claim, give_back(reason=WaitingReason.RATE_LIMIT)) for claim in claims]
    )
    batch.refresh_from_db()
    assert batch.final_counts == {"cancelled": 3}


def test_the_last_items_are_left_out_of_a_group_and_end_their_batch_alone(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, *[chat_body()] * 3)
    claims = [claim_item(item.id, worker_id=uuid7()) for item in BatchItem.objects.of(batch)]
    attempts = [(claim, completed(claim)) for claim in claims if claim]
    assert settling._settle_together(attempts) == [False] * 3
    run_concurrently([functools.partial(settle, *attempt) for attempt in attempts])
    batch.refresh_from_db()
    assert batch.final_counts == {"completed": 3}
