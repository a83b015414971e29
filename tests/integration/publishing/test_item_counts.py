"""The counts of running batches follow from the order in which items are published: whatever happens to them, they are
what counting each row gives."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now
from redis import Redis

from batches.completion.cancel import cancel_batch
from batches.completion.expire import expire_batch
from batches.execution.claim import Claim, claim_item
from batches.execution.retry_policy import Settlement, give_back
from batches.execution.settling.settle import settle
from batches.models import BatchItem, ItemState, PolicyPause
from batches.publishing.lost_messages import publish_lost
from batches.publishing.policy_pauses import limit_concurrency, pause_policy
from batches.publishing.publish import drain_publisher, publish_due
from relaybatch.ids import uuid7
from routing.calls.failures import Failure, FailureCode
from routing.calls.waiting_reason import WaitingReason
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.item_outcomes import grouped_counts
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    import uuid

    from batches.models import Batch

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = 60
STEPS = 160
TIMEOUT = Failure(FailureCode.TIMEOUT, "timed out after 300 s")

SETTLEMENTS = (
    Settlement(ItemState.COMPLETED, response_length=2),
    Settlement(ItemState.DISCARDED, failure=TIMEOUT),
    Settlement(ItemState.CANCELLED, failure=TIMEOUT),
    Settlement(ItemState.AVAILABLE, wait_seconds=3600, waiting_reason=WaitingReason.RETRY),
    Settlement(ItemState.AVAILABLE, waiting_reason=WaitingReason.WORKER_STOPPED),
    Settlement(ItemState.AVAILABLE, waiting_reason=WaitingReason.BREAKER_OPEN, excused_status=403),
    give_back(reason=WaitingReason.RATE_LIMIT, seconds=3600),
    give_back(reason=WaitingReason.REDIS_AWAY),
)


class Events:
    """What happens to three batches, two of them of one owner, in an order that `chance` decides."""

    def __init__(self, chance: random.Random) -> None:
        catalog = make_catalog("http://127.0.0.1:9")
        bodies = [chat_body()] * ITEMS
        self.batches = [submit(one, *bodies) for one in (catalog, catalog, make_caller(catalog))]
        self._chance = chance
        self._claims: list[Claim] = []

    def happen(self) -> None:
        often = [self.claim_published, self.settle_one, self.publish] * 6
        self._chance.choice(
            [*often, self.claim_any, self.lose_messages, self.pause, self.end_pause, self.become_due]
        )()

    def publish(self) -> None:
        publish_due(self._batch().owner_id)

    def claim_published(self) -> None:
        published = BatchItem.objects.filter(state="available", published_at__isnull=False)
        self._claim(list(published.order_by("id").values_list("id", flat=True))[:8])

    def claim_any(self) -> None:
        """As by a message of an item that was published in what the database has lost."""
        self._claim(list(BatchItem.objects.order_by("id").values_list("id", flat=True)))

    def settle_one(self) -> None:
        if self._claims:
            claim = self._claims.pop(self._chance.randrange(len(self._claims)))
            settle(claim, self._chance.choice(SETTLEMENTS))

    def lose_messages(self) -> None:
        with Redis.from_url(settings.REDIS_URL) as client:
            client.flushdb()
        published = BatchItem.objects.filter(published_at__isnull=False)
        published.update(published_at=F("published_at") - timedelta(minutes=1))
        publish_lost()

    def pause(self) -> None:
        policy_id = self._batch().policy_id
        if self._chance.random() < 0.5:
            pause_policy(policy_id, reason=WaitingReason.RATE_LIMIT, seconds=3600)
        else:
            limit_concurrency(policy_id, reason=WaitingReason.RATE_LIMIT, max_running=3)

    def end_pause(self) -> None:
        PolicyPause.objects.all().delete()

    def become_due(self) -> None:
        BatchItem.objects.filter(batch=self._batch(), not_before__isnull=False).update(not_before=Now())

    def _batch(self) -> Batch:
        return self._chance.choice(self.batches)

    def _claim(self, ids: list[uuid.UUID]) -> None:
        if ids and (claim := claim_item(self._chance.choice(ids), worker_id=uuid7())):
            self._claims.append(claim)


def assert_counts_are_those_of_the_rows(batches: list[Batch]) -> None:
    drain_publisher()
    counts = BatchItem.objects.item_counts([batch.id for batch in batches])
    for batch in batches:
        assert counts[batch.id].by_state == grouped_counts(batch)
        waiting = BatchItem.objects.filter(batch=batch, state="available", published_at=None)
        reasons = Counter(waiting.exclude(waiting_reason="").values_list("waiting_reason", flat=True))
        assert counts[batch.id].waiting == reasons


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_the_rows_after_every_event(seed: int) -> None:
    chance = random.Random(seed)
    events = Events(chance)
    cancelled, expired, _ = events.batches
    for step in range(STEPS):
        events.happen()
        if step == STEPS // 2:
            cancel_batch(cancelled)
        if step == STEPS * 3 // 4:
            expire_batch(expired.id)
        assert_counts_are_those_of_the_rows(events.batches)


def test_an_item_that_was_never_published_is_not_claimed() -> None:
    """It would be in the middle of those that are counted as the end of their batch."""
    batch = submit(make_catalog("http://127.0.0.1:9"), *[chat_body()] * ITEMS)
    last = BatchItem.objects.get(batch=batch, idx=ITEMS - 1)
    assert claim_item(last.id, worker_id=uuid7()) is None
    assert_counts_are_those_of_the_rows([batch])
