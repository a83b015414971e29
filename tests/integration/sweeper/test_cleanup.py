"""What the sweeper removes, and what it leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings as django_settings
from django.db.models import F
from django.db.models.functions import Now

from batches.completion.cancel import cancel_batch
from batches.completion.delete import delete_batch
from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import (
    Batch,
    BatchItem,
    File,
    IdempotencyKey,
    ItemResponse,
    PayloadChunk,
    PayloadStoreMark,
    Worker,
)
from batches.payloads import PayloadWriteError, open_store
from batches.payloads.database_writer import CHUNK_BYTES
from batches.sweeper import cleanup
from batches.sweeper.cleanup import BATCHES_PER_STEP, Cleanup
from batches.sweeper.orphaned_payloads import remove_orphaned_payloads, remove_orphaned_responses
from relaybatch.http.errors import Conflict
from relaybatch.ids import uuid7
from tests.support.rows.catalog import make_catalog
from tests.support.rows.item_outcomes import complete_inline
from tests.support.rows.submissions import chat_body, submit
from usage.models import UsageEvent, UsageTotal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from pytest_django import Settings

    from batches.payloads import BatchPayloads
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


def ended(catalog: SimpleNamespace) -> Batch:
    batch = submit(catalog, chat_body(), chat_body())
    for item_id in BatchItem.objects.of(batch).values_list("id", flat=True):
        execute_item(item_id, in_flight=InFlightItems(uuid7(), slots=8))
    batch.refresh_from_db()
    return batch


def folder_of(batch: Batch) -> Path:
    return Path(django_settings.RELAY_BATCH_PAYLOAD_DIR) / batch.id.hex


def test_a_deleted_batch_goes_with_items_payloads_and_totals_and_its_events_stay(
    catalog: SimpleNamespace,
) -> None:
    batch, other = ended(catalog), ended(catalog)
    delete_batch(batch)
    Cleanup().run()
    assert list(Batch.objects.values_list("id", flat=True)) == [other.id]
    assert BatchItem.objects.count() == 2
    assert not folder_of(batch).exists()
    assert not UsageTotal.objects.filter(scope=f"batch:{batch.id}").exists()
    assert UsageEvent.objects.filter(batch_id=batch.id).count() == 2


@pytest.mark.parametrize("expires", [False, True])
def test_responses_that_are_rows_go_with_their_items(
    catalog: SimpleNamespace, settings: Settings, monkeypatch: pytest.MonkeyPatch, expires: bool
) -> None:
    """In steps of two items, of which one has no such response."""
    monkeypatch.setattr(cleanup, "ITEMS_PER_STEP", 2)
    batch, other = (submit(catalog, *[chat_body()] * 5) for _ in range(2))
    for idx in (0, 1, 2, 4):
        complete_inline(batch, idx, b"{}")
    complete_inline(other, 3, b"{}")
    cancel_batch(batch)
    if expires:
        settings.RELAY_BATCH_RETENTION_DAYS = 7
        Batch.objects.filter(id=batch.id).update(ended_at=F("ended_at") - timedelta(days=8))
    else:
        delete_batch(Batch.objects.get(id=batch.id))
    Cleanup().run()
    assert not BatchItem.objects.filter(batch_id=batch.id).exists()
    kept = BatchItem.objects.get(batch=other, idx=3)
    assert list(ItemResponse.objects.values_list("item_id", flat=True)) == [kept.id]


def test_a_deleted_batch_stays_until_the_volume_of_its_payloads_is_back(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    cancel_batch(batch)
    delete_batch(batch)
    volume = Path(django_settings.RELAY_BATCH_PAYLOAD_DIR)
    away = volume.rename(volume.with_name("away"))
    volume.mkdir()
    Cleanup().run()
    assert Batch.objects.filter(id=batch.id).exists()
    volume.rmdir()
    away.rename(volume)
    Cleanup().run()
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
    Cleanup().run()
    assert Batch.objects.count() == 3, "without the setting everything is kept"
    settings.RELAY_BATCH_RETENTION_DAYS = 7
    Cleanup().run()
    assert set(Batch.objects.values_list("id", flat=True)) == {recent.id, running.id}


def test_a_batch_that_cannot_be_removed_does_not_keep_the_ones_behind_it(catalog: SimpleNamespace) -> None:
    """Its folder is a mountpoint, or somebody else's: as many of them as a step removes, and then one more."""
    *stuck, free = (submit(catalog) for _ in range(BATCHES_PER_STEP + 1))
    for batch in (*stuck, free):
        cancel_batch(batch)
        delete_batch(batch)
    for batch in stuck:
        shutil.rmtree(folder_of(batch))
        folder_of(batch).touch()
    cleanup = Cleanup()
    cleanup.run()
    assert set(Batch.objects.values_list("id", flat=True)) == {batch.id for batch in stuck}
    for batch in stuck:
        folder_of(batch).unlink()
    cleanup.run()
    assert not Batch.objects.exists(), "they are tried again"


@pytest.fixture
def volume(settings: Settings, tmp_path: Path) -> Path:
    """Of a deployment that met it, empty, three hours ago."""
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "volume")
    open_store().check()
    PayloadStoreMark.objects.update(created_at=F("created_at") - timedelta(hours=30))
    return tmp_path / "volume"


def id_aged(hours: float) -> uuid.UUID:
    then = int((time.time() - hours * 3600) * 1000)
    return uuid.UUID(int=then << 80 | 7 << 76 | 0b10 << 62 | int.from_bytes(os.urandom(7), "big"))


def folder_aged(hours: float) -> str:
    batch_id = id_aged(hours)
    open_store().put_requests(batch_id, [b"{}"])
    return batch_id.hex


def test_a_retention_beyond_a_hundred_years_stops_the_start() -> None:
    """The database's dates would end before it, and with them each tidying."""
    environment = dict(os.environ) | {"RELAY_BATCH_RETENTION_DAYS": "999999999"}
    started = subprocess.run(
        [sys.executable, "-c", "import relaybatch.settings"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "RELAY_BATCH_RETENTION_DAYS: expected a whole number from 1 to 36500" in started.stderr


def test_payloads_of_a_submission_that_was_never_stored_go_when_they_are_old(
    catalog: SimpleNamespace, volume: Path
) -> None:
    stored = submit(catalog)
    orphan, young = folder_aged(2), folder_aged(0.5)
    remove_orphaned_payloads()
    assert set(open_store().folders()) == {young, stored.id.hex}
    assert orphan not in open_store().folders()


def test_files_that_were_never_stored_go_when_they_are_old_and_no_other(
    catalog: SimpleNamespace, volume: Path
) -> None:
    stored, orphan, young = (id_aged(hours) for hours in (25, 25, 23))
    for file_id in (stored, orphan, young):
        with open_store().open_file_writer(file_id) as writer:
            writer.write(b"{}")
            writer.commit()
    owner = submit(catalog).owner
    File.objects.create(id=stored, owner=owner, purpose="batch", size_bytes=2, created_at=Now())
    remove_orphaned_payloads()
    kept = {f"file-{stored.hex}", f"file-{young.hex}"}
    assert {folder for folder in open_store().folders() if folder.startswith("file-")} == kept
    assert open_store().read_file(stored, offset=0, length=2) == b"{}"


@pytest.fixture(params=["directory", "database", "objects"])
def store(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> BatchPayloads:
    """Of each kind, met three hours ago; the object store is obstore's own, in memory."""
    chosen = {"directory": "", "database": "postgres:", "objects": f"memory:///{uuid7()}"}
    settings.RELAY_BATCH_PAYLOAD_URL = chosen[request.param]
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "volume")
    open_store().check()
    PayloadStoreMark.objects.update(created_at=F("created_at") - timedelta(hours=3))
    return open_store()


def test_an_answer_that_came_after_its_batch_was_removed_goes_when_it_is_old(store: BatchPayloads) -> None:
    """Another worker had the item, and was cut off from the database for a while."""
    removed, young = (uuid.UUID(hex=folder_aged(hours)) for hours in (2, 0.5))
    for batch_id in (removed, young):
        store.discard(batch_id)
        with contextlib.suppress(PayloadWriteError):  # a directory takes none without its requests
            store.put_response(batch_id, idx=0, claim_no=1, body=bytes(CHUNK_BYTES + 1))
    late = store.read_responses(young, [(0, 1)])
    remove_orphaned_payloads()
    assert store.read_responses(removed, [(0, 1)]) == [None]
    assert store.read_responses(young, [(0, 1)]) == late
    assert removed.hex not in store.folders()
    assert not PayloadChunk.objects.filter(name__contains=removed.hex).exists()


def test_what_was_in_the_store_before_this_database_met_it_is_left_alone(volume: Path) -> None:
    """Payloads are restored first, perhaps without their marker, and their rows later."""
    restored = folder_aged(31)
    remove_orphaned_payloads()
    assert list(open_store().folders()) == [restored]


def test_a_database_that_found_the_store_marked_leaves_alone_what_it_does_not_know(volume: Path) -> None:
    """The other database goes on using it."""
    PayloadStoreMark.objects.all().delete()
    open_store().check()
    PayloadStoreMark.objects.update(created_at=F("created_at") - timedelta(hours=3))
    theirs = folder_aged(2)
    remove_orphaned_payloads()
    assert list(open_store().folders()) == [theirs]


@pytest.mark.parametrize("mark", ["another", None])
def test_nothing_is_removed_from_a_store_that_is_not_ours(volume: Path, mark: str | None) -> None:
    orphan = folder_aged(2)
    (volume / ".relaybatch-store").unlink()
    if mark:
        (volume / ".relaybatch-store").write_text(mark)
    remove_orphaned_payloads()
    assert list(open_store().folders()) == [orphan]


def test_payloads_that_cannot_be_removed_do_not_keep_the_others(volume: Path) -> None:
    orphans = [folder_aged(2) for _ in range(3)]
    resisting = volume / min(orphans)
    with resisting_removal(resisting):
        remove_orphaned_payloads()
        assert list(open_store().folders()) == [resisting.name]


@contextlib.contextmanager
def resisting_removal(folder: Path) -> Iterator[None]:
    """A mount beneath it, as root has no other obstacle; permissions for everybody else."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
        yield
        folder.chmod(0o700)
        return
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(folder)], check=False).returncode:
        pytest.skip("this root may not mount")
    yield
    subprocess.run(["umount", str(folder)], check=True)


def test_lost_workers_without_items_and_old_idempotency_keys_are_deleted(
    catalog: SimpleNamespace,
) -> None:
    batch = submit(catalog)
    now = batch.created_at
    lost, busy, alive = (
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
    Cleanup().run()
    assert set(Worker.objects.values_list("id", flat=True)) == {busy.id, alive.id}
    assert not Worker.objects.filter(id=lost.id).exists()
    assert IdempotencyKey.objects.count() == 1


def test_a_batch_left_open_without_open_items_is_ended(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    BatchItem.objects.filter(batch_id=batch.id).update(state="cancelled", finished_at=batch.created_at)
    Cleanup().run()
    batch.refresh_from_db()
    assert batch.final_counts == {"cancelled": 1}


def test_responses_without_an_item_are_removed_and_others_stay(catalog: SimpleNamespace) -> None:
    batch = submit(catalog, chat_body(), chat_body())
    for idx in (0, 1):
        complete_inline(batch, idx, b"{}")
    kept, orphan = BatchItem.objects.of(batch)
    BatchItem.objects.filter(id=orphan.id).delete()
    remove_orphaned_responses()
    assert list(ItemResponse.objects.values_list("item_id", flat=True)) == [kept.id]
