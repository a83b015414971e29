"""What the sweeper removes, and what it leaves."""

from __future__ import annotations

import os
import time
import uuid
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings as django_settings
from django.db.models import F

from batches.cancel import cancel_batch
from batches.delete import delete_batch
from batches.execute import execute_item
from batches.housekeeping import remove_orphaned_payloads, tidy
from batches.models import Batch, BatchItem, IdempotencyKey, Worker
from batches.payloads import open_store
from batches.running import RunningItems
from relaybatch.errors import Conflict
from relaybatch.ids import uuid7
from tests.catalog import make_catalog
from tests.submissions import chat_body, submit
from usage.models import UsageEvent, UsageTotal

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import Settings

    from tests.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


def ended(catalog: SimpleNamespace) -> Batch:
    batch = submit(catalog, chat_body(), chat_body())
    for item_id in BatchItem.objects.of(batch).values_list("id", flat=True):
        execute_item(item_id, running=RunningItems(uuid7()))
    batch.refresh_from_db()
    return batch


def folder_of(batch: Batch) -> Path:
    return Path(django_settings.RELAY_BATCH_PAYLOAD_DIR) / batch.id.hex


def test_a_deleted_batch_goes_with_items_payloads_and_totals_and_its_events_stay(
    catalog: SimpleNamespace,
) -> None:
    batch, other = ended(catalog), ended(catalog)
    delete_batch(batch)
    tidy()
    assert list(Batch.objects.values_list("id", flat=True)) == [other.id]
    assert BatchItem.objects.count() == 2
    assert not folder_of(batch).exists()
    assert not UsageTotal.objects.filter(scope=f"batch:{batch.id}").exists()
    assert UsageEvent.objects.filter(batch_id=batch.id).count() == 2


def test_a_deleted_batch_stays_until_the_volume_of_its_payloads_is_back(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    cancel_batch(batch)
    delete_batch(batch)
    volume = Path(django_settings.RELAY_BATCH_PAYLOAD_DIR)
    away = volume.rename(volume.with_name("away"))
    volume.mkdir()
    tidy()
    assert Batch.objects.filter(id=batch.id).exists()
    volume.rmdir()
    away.rename(volume)
    tidy()
    assert not Batch.objects.filter(id=batch.id).exists()
    assert batch.id.hex not in open_store().folders()


def test_a_batch_that_has_not_ended_cannot_be_deleted(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    with pytest.raises(Conflict):
        delete_batch(batch)
    cancel_batch(batch)
    delete_batch(batch)


def test_retention_removes_what_ended_long_ago_and_only_that(
    catalog: SimpleNamespace, settings: Settings
) -> None:
    old, recent, running = ended(catalog), ended(catalog), submit(catalog)
    Batch.objects.filter(id=old.id).update(ended_at=F("ended_at") - timedelta(days=8))
    tidy()
    assert Batch.objects.count() == 3, "without the setting everything is kept"
    settings.RELAY_BATCH_RETENTION_DAYS = 7
    tidy()
    assert set(Batch.objects.values_list("id", flat=True)) == {recent.id, running.id}


def test_payloads_of_a_submission_that_was_never_stored_go_when_they_are_old(
    catalog: SimpleNamespace,
) -> None:
    batch = submit(catalog)
    two_hours_ago = int((time.time() - 7200) * 1000)
    orphan = uuid.UUID(int=two_hours_ago << 80 | 7 << 76 | 0b10 << 62 | int.from_bytes(os.urandom(7), "big"))
    young = uuid7()
    for batch_id in (orphan, young):
        open_store().put_requests(batch_id, [b"{}"])
    remove_orphaned_payloads()
    folders = set(open_store().folders())
    assert orphan.hex not in folders
    assert {young.hex, batch.id.hex} <= folders


def test_dead_workers_without_items_and_old_idempotency_keys_are_forgotten(
    catalog: SimpleNamespace,
) -> None:
    batch = submit(catalog)
    now = batch.created_at
    dead, busy, alive = (
        Worker.objects.create(host="a", pid=1, slots=8, started_at=now, seen_at=seen)
        for seen in (now - timedelta(hours=1), now - timedelta(hours=1), now)
    )
    BatchItem.objects.filter(batch_id=batch.id).update(state="running", worker_id=busy.id, started_at=now)
    for number, age in enumerate((25, 23)):
        IdempotencyKey.objects.create(
            owner=batch.owner,
            key_hash=bytes([number]) * 32,
            body_hash=bytes(32),
            status=202,
            answer=b"{}",
            created_at=now - timedelta(hours=age),
        )
    tidy()
    assert set(Worker.objects.values_list("id", flat=True)) == {busy.id, alive.id}
    assert not Worker.objects.filter(id=dead.id).exists()
    assert IdempotencyKey.objects.count() == 1


def test_a_batch_left_open_without_open_items_is_ended(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    BatchItem.objects.filter(batch_id=batch.id).update(state="cancelled", finished_at=batch.created_at)
    tidy()
    batch.refresh_from_db()
    assert batch.final_counts == {"cancelled": 1}
