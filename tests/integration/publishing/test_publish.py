"""Windows, fairness between owners, and what is done about messages that the broker lost."""

from __future__ import annotations

import functools
import json
import uuid
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import redis
from django.conf import settings
from django.db.models import F

from batches.completion.cancel import cancel_batch
from batches.execution.claim import claim_item
from batches.models import BatchItem, PolicyPause, Worker
from batches.publishing.broker import queue_length
from batches.publishing.lost_messages import publish_lost
from batches.publishing.policy_pauses import pause_policy
from batches.publishing.publish import drain_publisher, publish_all_due, publish_due
from relaybatch.ids import uuid7
from routing.calls.waiting_reason import WaitingReason
from routing.models import Policy, ServiceAccount
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.run.races import run_concurrently

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from batches.models import Batch

pytestmark = pytest.mark.django_db(transaction=True)

MIN_WINDOW = 16


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.flushdb()
    yield client
    client.flushdb()
    client.close()


@pytest.fixture
def catalog() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def queued_items(broker: redis.Redis) -> list[uuid.UUID]:
    """Oldest message first."""
    messages = [json.loads(message) for message in reversed(broker.lrange("items", 0, -1))]
    return [uuid.UUID(message["headers"]["id"]) for message in messages]


def submit_and_publish(catalog: SimpleNamespace, count: int, **choices: object) -> Batch:
    batch = submit(catalog, *[chat_body()] * count, **choices)
    drain_publisher()
    return batch


def grow_old(seconds: int = 60) -> None:
    BatchItem.objects.update(published_at=F("published_at") - timedelta(seconds=seconds))


def test_a_submission_publishes_one_window_in_the_order_of_its_items(
    broker: redis.Redis, catalog: SimpleNamespace
) -> None:
    batch = submit_and_publish(catalog, 100)
    expected = list(BatchItem.objects.of(batch).values_list("id", flat=True)[:MIN_WINDOW])
    assert queued_items(broker) == expected


def test_the_window_is_twice_the_live_slots(broker: redis.Redis, catalog: SimpleNamespace) -> None:
    batch = submit_and_publish(catalog, 100)
    now = batch.created_at
    Worker.objects.create(host="a", pid=1, slots=20, started_at=now, seen_at=now)
    Worker.objects.create(host="b", pid=1, slots=99, started_at=now, seen_at=now - timedelta(hours=1))
    publish_due(batch.owner_id)
    assert queue_length() == 40


def test_publishers_of_one_owner_at_the_same_moment_keep_to_the_window(
    broker: redis.Redis, catalog: SimpleNamespace
) -> None:
    batch = submit_and_publish(catalog, 100)
    broker.flushdb()
    BatchItem.objects.update(published_at=None)
    run_concurrently([functools.partial(publish_due, batch.owner_id)] * 8)
    assert queue_length() == MIN_WINDOW


def test_every_owner_has_the_same_window_whatever_the_backlog(
    broker: redis.Redis, catalog: SimpleNamespace
) -> None:
    large = submit_and_publish(catalog, 500)
    small = submit_and_publish(make_caller(catalog), 10)
    owners = dict(BatchItem.objects.values_list("id", "owner_id"))
    counts = Counter(owners[item_id] for item_id in queued_items(broker))
    assert counts == {large.owner_id: MIN_WINDOW, small.owner_id: 10}


def test_an_item_is_not_published_before_its_time(broker: redis.Redis, catalog: SimpleNamespace) -> None:
    batch = submit_and_publish(catalog, 2)
    broker.flushdb()
    items = BatchItem.objects.of(batch)
    items.update(published_at=None)
    items.filter(idx=0).update(not_before=batch.created_at + timedelta(hours=1))
    publish_all_due()
    assert queued_items(broker) == [items.get(idx=1).id]


def test_an_emptied_broker_gets_every_waiting_message_again(
    broker: redis.Redis, catalog: SimpleNamespace
) -> None:
    submit_and_publish(catalog, 100)
    before = queued_items(broker)
    broker.flushdb()
    grow_old()
    assert publish_lost() == MIN_WINDOW
    assert queued_items(broker) == before


def test_what_the_broker_still_holds_is_not_published_again(
    broker: redis.Redis, catalog: SimpleNamespace
) -> None:
    submit_and_publish(catalog, 100)
    grow_old()
    assert publish_lost() == 0
    assert queue_length() == MIN_WINDOW


def test_the_messages_that_a_lost_worker_took_along_are_the_ones_published_again(
    broker: redis.Redis, catalog: SimpleNamespace
) -> None:
    submit_and_publish(catalog, 100)
    taken = queued_items(broker)[:5]
    broker.rpop("items", 5)
    grow_old()
    assert publish_lost() == 5
    assert sorted(queued_items(broker)[-5:]) == sorted(taken)
    assert queue_length() == MIN_WINDOW


def test_a_message_that_was_only_just_published_is_not_taken_for_lost(
    broker: redis.Redis, catalog: SimpleNamespace
) -> None:
    submit_and_publish(catalog, 100)
    broker.flushdb()
    assert publish_lost() == 0


def test_a_settled_item_makes_room_for_the_next(broker: redis.Redis, catalog: SimpleNamespace) -> None:
    batch = submit_and_publish(catalog, 100)
    first = queued_items(broker)[0]
    claim_item(first, worker_id=uuid7())
    assert publish_due(batch.owner_id) == 0, "a running item keeps its place in the window"
    BatchItem.objects.filter(id=first).update(state="cancelled", finished_at=batch.created_at)
    assert publish_due(batch.owner_id) == 1


def test_the_places_that_a_cancelled_batch_leaves_are_filled_at_once(
    broker: redis.Redis, catalog: SimpleNamespace
) -> None:
    first, second = submit_and_publish(catalog, 100), submit_and_publish(catalog, 100)
    cancel_batch(first)
    drain_publisher()
    assert BatchItem.objects.of(second).filter(published_at__isnull=False).count() == MIN_WINDOW


def test_a_paused_policy_is_passed_over_and_others_are_not(
    broker: redis.Redis, catalog: SimpleNamespace
) -> None:
    paused = submit_and_publish(catalog, 100)
    neighbour = make_caller(catalog)
    ServiceAccount.objects.filter(id=neighbour.service_account.id).update(
        policy=Policy.objects.create(name="another")
    )
    other = submit_and_publish(neighbour, 5)
    broker.flushdb()
    BatchItem.objects.update(published_at=None)
    pause_policy(paused.policy_id, reason=WaitingReason.RATE_LIMIT, seconds=600)
    publish_all_due()
    assert queued_items(broker) == list(BatchItem.objects.of(other).values_list("id", flat=True))
    assert publish_due(paused.owner_id) == 0


def test_a_pause_only_ever_grows_and_ends_by_itself(broker: redis.Redis, catalog: SimpleNamespace) -> None:
    batch = submit_and_publish(catalog, 10)
    pause_policy(batch.policy_id, reason=WaitingReason.RATE_LIMIT, seconds=600)
    pause_policy(batch.policy_id, reason=WaitingReason.RATE_LIMIT, seconds=1)
    assert PolicyPause.objects.get().until > batch.created_at + timedelta(seconds=500)
    PolicyPause.objects.update(until=batch.created_at)
    broker.flushdb()
    BatchItem.objects.update(published_at=None)
    assert publish_due(batch.owner_id) == 10
