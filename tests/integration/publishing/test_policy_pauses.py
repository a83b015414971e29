"""Which items of a policy are published while its limit is spent, its keys are closed or its calls are too many."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.utils import timezone
from redis import Redis

from batches.models import BatchItem, PolicyPause
from batches.publishing.broker import queue_length
from batches.publishing.owner_window import MIN_WINDOW_ITEMS
from batches.publishing.policy_pauses import end_breaker_pause, limit_concurrency, pause_policy
from batches.publishing.publish import drain_publisher, publish_all_due, publish_due
from routing.calls.waiting_reason import WaitingReason
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from batches.models import Batch

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _empty_broker() -> Iterator[None]:
    with Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
        yield
        client.flushdb()


@pytest.fixture
def catalog() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def unpublished(catalog: SimpleNamespace, count: int) -> Batch:
    batch = submit(catalog, *[chat_body()] * count)
    drain_publisher()
    with Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
    BatchItem.objects.update(published_at=None)
    return batch


def test_at_a_concurrency_limit_no_more_items_are_out_than_may_run_and_one(catalog: SimpleNamespace) -> None:
    batch = unpublished(catalog, 50)
    limit_concurrency(batch.policy_id, reason=WaitingReason.RATE_LIMIT, max_running=3)
    assert publish_due(batch.owner_id) == 4
    assert publish_due(batch.owner_id) == 0
    out = BatchItem.objects.of(batch).filter(published_at__isnull=False)
    out.filter(idx__lt=2).update(state="running", worker_id=batch.id)
    assert publish_due(batch.owner_id) == 0
    out.filter(idx=0).update(state="cancelled", finished_at=timezone.now())
    assert publish_due(batch.owner_id) == 1
    assert queue_length() == 5


def test_the_batches_of_a_policy_share_its_concurrency_limit(catalog: SimpleNamespace) -> None:
    batches = [unpublished(catalog, 2) for _ in range(5)]
    limit_concurrency(batches[0].policy_id, reason=WaitingReason.RATE_LIMIT, max_running=2)
    assert [publish_due(batches[0].owner_id) for _ in range(3)] == [2, 1, 0]
    out = BatchItem.objects.filter(published_at__isnull=False).order_by("id")
    assert [item.batch_id for item in out] == [batches[0].id, batches[0].id, batches[1].id]


def test_another_policy_of_the_same_owner_has_the_rest_of_the_window(catalog: SimpleNamespace) -> None:
    limited, free = unpublished(catalog, 50), unpublished(catalog, 50)
    type(free).objects.filter(id=free.id).update(policy_id=free.id)
    limit_concurrency(limited.policy_id, reason=WaitingReason.RATE_LIMIT, max_running=3)
    assert publish_due(limited.owner_id) == MIN_WINDOW_ITEMS
    assert BatchItem.objects.of(limited).filter(published_at__isnull=False).count() == 4


def test_each_owner_of_a_policy_at_its_concurrency_limit_has_items_out(catalog: SimpleNamespace) -> None:
    batches = [unpublished(catalog, 50), unpublished(make_caller(catalog), 50)]
    limit_concurrency(batches[0].policy_id, reason=WaitingReason.RATE_LIMIT, max_running=1)
    publish_all_due()
    out = BatchItem.objects.filter(published_at__isnull=False)
    assert sorted(out.values_list("batch_id", flat=True)) == sorted([batch.id for batch in batches] * 2)


def test_a_full_pause_replaces_a_concurrency_limit_and_is_not_shortened_by_one(
    catalog: SimpleNamespace,
) -> None:
    batch = unpublished(catalog, 50)
    limit_concurrency(batch.policy_id, reason=WaitingReason.RATE_LIMIT, max_running=3)
    pause_policy(batch.policy_id, reason=WaitingReason.BREAKER_OPEN, seconds=1)
    assert publish_due(batch.owner_id) == 0
    limit_concurrency(batch.policy_id, reason=WaitingReason.RATE_LIMIT, max_running=3)
    assert publish_due(batch.owner_id) == 0
    end_breaker_pause(batch.policy_id)
    assert publish_due(batch.owner_id) == MIN_WINDOW_ITEMS


def test_a_concurrency_limit_ends_by_itself(catalog: SimpleNamespace) -> None:
    batch = unpublished(catalog, 50)
    limit_concurrency(batch.policy_id, reason=WaitingReason.RATE_LIMIT, max_running=3)
    assert PolicyPause.objects.get().until - timezone.now() < timedelta(seconds=10)
    PolicyPause.objects.update(until=batch.created_at)
    assert publish_due(batch.owner_id) == MIN_WINDOW_ITEMS
