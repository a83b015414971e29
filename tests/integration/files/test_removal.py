"""Files that are deleted or over: gone at once, removed by the sweeper, but kept for a batch that is validated."""

from __future__ import annotations

import contextlib
import resource
import shutil
import threading
import uuid
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as configured
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from batches.files.remove import FILES_PER_STEP, delete_file, mark_files_over
from batches.models import Batch, File
from batches.submission.store_rows import lock_input_file
from batches.sweeper.cleanup import Cleanup
from relaybatch.ids import uuid7
from tests.support.calls.file_calls import (
    LINES,
    content_of,
    error_of,
    file_form,
    post,
    stored_folders,
    upload,
)
from tests.support.rows.file_batches import make_file
from tests.support.rows.submissions import submit
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)


def validating(rows: SimpleNamespace, file: File) -> Batch:
    """A batch that is being validated from the file."""
    batch = submit(rows)
    Batch.objects.filter(id=batch.id).update(input_file_id=file.id, in_progress_at=None)
    return batch


def exists(file: File) -> tuple[bool, bool]:
    """Whether its row and its content are there."""
    return File.objects.filter(id=file.id).exists(), file.public_id in stored_folders()


def test_a_deleted_file_goes_with_its_content_and_another_stays(
    client: Client, rows: SimpleNamespace
) -> None:
    gone, kept = upload(client, rows), upload(client, rows)
    assert delete_file(gone.id)
    assert not delete_file(gone.id)
    assert exists(gone) == (True, True)
    Cleanup().run()
    assert exists(gone) == (False, False)
    assert exists(kept) == (True, True)


def file_aged(rows: SimpleNamespace, *, days: int) -> File:
    made_at = timezone.now() - timedelta(days=days)
    milliseconds = int(made_at.timestamp() * 1000)
    return make_file(rows, LINES, id=uuid.UUID(int=milliseconds << 80 | 7 << 76), created_at=made_at)


@pytest.mark.parametrize("over", ["expired", "retention"])
def test_a_file_that_is_over_goes_like_a_deleted_one(
    client: Client, rows: SimpleNamespace, settings: Settings, over: str
) -> None:
    if over == "expired":
        gone, kept = upload(client, rows), upload(client, rows)
        File.objects.filter(id=kept.id).update(expires_at=Now() + timedelta(minutes=1))
        File.objects.filter(id=gone.id).update(expires_at=Now())
    else:
        settings.RELAY_BATCH_RETENTION_DAYS = 7
        gone, kept = file_aged(rows, days=8), file_aged(rows, days=6)
    assert not delete_file(gone.id)
    Cleanup().run()
    assert exists(gone) == (False, False)
    assert exists(kept) == (True, True)


@pytest.mark.parametrize("over", ["deleted", "expired"])
def test_content_is_kept_while_a_batch_is_validated_from_it_though_the_file_is_hidden(
    client: Client, rows: SimpleNamespace, over: str
) -> None:
    file = upload(client, rows)
    batch = validating(rows, file)
    if over == "deleted":
        assert client.delete(f"/v1/files/{file.public_id}", headers=rows.headers).status_code == 200
    else:
        File.objects.update(expires_at=Now())
    Cleanup().run()
    assert client.get(f"/v1/files/{file.public_id}", headers=rows.headers).status_code == 404
    assert content_of(file) == LINES
    Batch.objects.filter(id=batch.id).update(in_progress_at=Now())
    Cleanup().run()
    assert exists(file) == (False, False)


def test_files_that_cannot_be_removed_do_not_keep_the_ones_behind_them(
    client: Client, rows: SimpleNamespace
) -> None:
    *stuck, free = (upload(client, rows) for _ in range(FILES_PER_STEP + 1))
    for file in (*stuck, free):
        delete_file(file.id)
    for file in stuck:
        folder = Path(configured.RELAY_BATCH_PAYLOAD_DIR) / file.public_id
        shutil.rmtree(folder)
        folder.touch()
    cleanup = Cleanup()
    cleanup.run()
    assert set(File.objects.all()) == set(stuck)
    for file in stuck:
        (Path(configured.RELAY_BATCH_PAYLOAD_DIR) / file.public_id).unlink()
    cleanup.run()
    assert not File.objects.exists(), "they are tried again"


def test_nothing_is_removed_while_the_store_is_away(
    client: Client, rows: SimpleNamespace, settings: Settings, tmp_path: Path
) -> None:
    file = upload(client, rows)
    delete_file(file.id)
    mounted = settings.RELAY_BATCH_PAYLOAD_DIR
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "unmounted")
    Cleanup().run()
    assert File.objects.filter(id=file.id).exists()
    settings.RELAY_BATCH_PAYLOAD_DIR = mounted
    Cleanup().run()
    assert exists(file) == (False, False)


@contextlib.contextmanager
def no_room() -> Iterator[None]:
    """No file of this process may grow beyond a few bytes: a write fails in its middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("trouble", ["unmounted", "full"])
def test_an_upload_that_the_store_does_not_take_is_a_503_and_stores_nothing(
    client: Client, rows: SimpleNamespace, settings: Settings, tmp_path: Path, trouble: str
) -> None:
    upload(client, rows)
    before = stored_folders()
    mounted = settings.RELAY_BATCH_PAYLOAD_DIR
    if trouble == "unmounted":
        settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "unmounted")
        response = post(client, rows, file_form())
    else:
        with no_room():
            response = post(client, rows, file_form(bytes(2_000_000)))
    settings.RELAY_BATCH_PAYLOAD_DIR = mounted
    assert error_of(response) == (503, "store_unavailable", None)
    assert response["Retry-After"] == "5"
    assert File.objects.count() == 1
    assert stored_folders() == before


class HeldFile:
    """A transaction on a thread of its own that has locked the file, until `commit`."""

    def __init__(self, file: File, create: Callable[[], Any]) -> None:
        self._file, self._create = file, create
        self._locked, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> HeldFile:
        self._thread.start()
        assert self._locked.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.commit()

    def commit(self) -> None:
        self._go.set()
        self._thread.join()

    def _run(self) -> None:
        with transaction.atomic():
            assert lock_input_file(self._file.owner_id, self._file.id)
            self._create()
            self._locked.set()
            self._go.wait(30)
        connection.close()


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock')")
        return bool(cursor.fetchone()[0])


def test_a_delete_waits_for_a_batch_that_is_created_from_the_file(
    client: Client, rows: SimpleNamespace
) -> None:
    file = upload(client, rows)
    batch = submit(rows)
    deleted: list[bool] = []

    def delete() -> None:
        deleted.append(delete_file(file.id))
        connection.close()

    with HeldFile(file, lambda: Batch.objects.filter(id=batch.id).update(input_file_id=file.id)) as held:
        deleting = threading.Thread(target=delete)
        deleting.start()
        wait_until(waits_for_a_lock, lambda: "nothing waits")
        assert not deleted
        held.commit()
        deleting.join()
    assert deleted == [True]
    Cleanup().run()
    assert content_of(file) == LINES


def test_the_sweeper_leaves_a_file_that_expires_while_a_batch_is_created_from_it(
    client: Client, rows: SimpleNamespace
) -> None:
    file = upload(client, rows)
    batch = submit(rows)

    def create() -> None:
        Batch.objects.filter(id=batch.id).update(input_file_id=file.id)
        File.objects.filter(id=file.id).update(expires_at=Now())

    with HeldFile(file, create):
        Cleanup().run()
        assert exists(file) == (True, True)
    Cleanup().run()
    assert exists(file) == (True, True)


@pytest.mark.parametrize("gone", ["deleted", "expired", "removed", "unknown"])
def test_a_file_that_is_gone_cannot_be_held(client: Client, rows: SimpleNamespace, gone: str) -> None:
    file = upload(client, rows)
    file_id = file.id
    match gone:
        case "deleted":
            delete_file(file_id)
        case "expired":
            File.objects.update(expires_at=Now())
        case "removed":
            delete_file(file_id)
            Cleanup().run()
        case "unknown":
            file_id = uuid7()
    with transaction.atomic():
        assert not lock_input_file(file.owner_id, file_id)


def test_marking_what_is_over_waits_for_nobody(client: Client, rows: SimpleNamespace) -> None:
    held, other = upload(client, rows), upload(client, rows)
    File.objects.update(expires_at=Now() + timedelta(seconds=1))
    with HeldFile(held, lambda: None):
        wait_until(lambda: not File.objects.present().exists(), lambda: "nothing expires")
        mark_files_over()
        assert File.objects.get(id=held.id).deleted_at is None
        assert File.objects.get(id=other.id).deleted_at
    mark_files_over()
    assert File.objects.get(id=held.id).deleted_at
