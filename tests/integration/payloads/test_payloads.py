"""Payloads of batches in every store, and what the directory alone promises."""

from __future__ import annotations

import itertools
import os
import stat
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from obstore.store import S3Store

from batches.models import PayloadStoreMark
from batches.payloads import (
    BatchPayloads,
    PayloadReadError,
    PayloadStoreUnavailable,
    PayloadWriteError,
    open_store,
)
from batches.payloads.database import DatabasePayloads
from batches.payloads.moving.prepare import prepare_fallback
from batches.payloads.object_store import ObjectPayloads
from tests.support.servers.deployment import DEADLINE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

BATCH = uuid.UUID(int=7)


@pytest.fixture
def store(kind: str) -> BatchPayloads:
    """As the settings say (conftest.py), with a prepared fallback where there is one."""
    if kind == "fallback":
        prepare_fallback()
    return open_store()


@pytest.fixture(params=["RELAY_BATCH_PAYLOAD_DIR", "RELAY_BATCH_PAYLOAD_URL"])
def directory(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Path:
    """The same folder by its path, and by its URL."""
    folder = tmp_path / "payloads of ours"
    setattr(settings, request.param, str(folder) if request.param.endswith("DIR") else folder.as_uri())
    return folder


def test_responses_come_back_byte_for_byte_and_missing_ones_as_none(store: BatchPayloads) -> None:
    store.put_requests(BATCH, [b"{}"])
    store.put_response(BATCH, idx=1, claim_no=2, body=b'{"x": 1.0}\n')
    assert store.read_responses(BATCH, [(0, 1), (1, 2), (1, 3)]) == [None, b'{"x": 1.0}\n', None]


def test_discarding_a_batch_removes_all_of_it_and_may_be_repeated(store: BatchPayloads) -> None:
    store.put_requests(BATCH, [b"{}"])
    store.put_response(BATCH, idx=0, claim_no=1, body=b"{}")
    assert list(store.folders()) == [BATCH.hex]
    store.discard(BATCH)
    store.discard(BATCH)
    assert list(store.folders()) == []
    assert store.read_responses(BATCH, [(0, 1)]) == [None]


def test_a_new_deployment_marks_its_store_once(store: BatchPayloads) -> None:
    store.check()
    mark = PayloadStoreMark.objects.get().value
    store.check()
    assert PayloadStoreMark.objects.get().value == mark


def test_files_and_folders_are_for_the_owner_alone(directory: Path) -> None:
    open_store().put_requests(BATCH, [b"{}"])
    open_store().put_response(BATCH, idx=0, claim_no=1, body=b"{}")
    paths = [directory, *directory.rglob("*")]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "file://localhost{}", "FILE://{}"])
def test_every_form_of_a_folders_url_is_that_folder(form: str, settings: Settings, tmp_path: Path) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = form.format(f"{tmp_path}/p%C3%A4%20%2Byloads")
    open_store().put_requests(BATCH, [b"{}"])
    assert (tmp_path / "pä +yloads" / BATCH.hex / "requests").read_bytes() == b"{}"


def test_every_new_folder_is_synced_by_name_before_its_first_file_counts(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In power cuts it is the folder's own parent that remembers it."""
    store = open_store()
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda opened: synced.append(Path(f"/proc/self/fd/{opened}").readlink()))
    store.put_requests(BATCH, [b"{}"])
    assert directory in synced
    synced.clear()
    store.put_response(BATCH, idx=0, claim_no=1, body=b"{}")
    folder = directory / BATCH.hex
    assert {folder, folder / "responses", folder / "responses" / "0"} <= set(synced)
    synced.clear()
    store.put_response(BATCH, idx=1, claim_no=1, body=b"{}")
    file, parent = synced
    assert (file.parent, parent) == (folder / "responses" / "0",) * 2
    assert file.name.startswith("1-1~")


@pytest.fixture(params=["bucket", "table"])
def broken_store(request: pytest.FixtureRequest) -> Iterator[BatchPayloads]:
    """A bucket where nobody answers; a table that has another name."""
    if request.param == "bucket":
        bucket = S3Store(
            "none",
            endpoint="http://127.0.0.1:9",
            access_key_id="none",
            secret_access_key="none",
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
        yield BatchPayloads(ObjectPayloads(bucket))
        return
    _rename("batches_payloadchunk", "away")
    yield BatchPayloads(DatabasePayloads())
    _rename("away", "batches_payloadchunk")


def _rename(table: str, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {name}")


def test_what_goes_wrong_is_raised_as_an_error_of_payloads(broken_store: BatchPayloads) -> None:
    with pytest.raises(PayloadStoreUnavailable):
        list(broken_store.folders())
    with pytest.raises(PayloadWriteError):
        broken_store.discard(BATCH)
    with pytest.raises(PayloadWriteError):
        broken_store.put_requests(BATCH, [b"{}"])
    with pytest.raises(PayloadReadError):
        broken_store.read_requests(BATCH)


def test_an_answer_is_not_written_where_the_requests_are_not(directory: Path) -> None:
    """The volume is not mounted: what is written beneath it would be found by nobody when it is back."""
    store = open_store()
    store.put_requests(BATCH, [b"{}"])
    directory.rename(directory.with_name("elsewhere"))
    with pytest.raises(PayloadWriteError):
        store.put_response(BATCH, idx=0, claim_no=1, body=b"{}")
    directory.mkdir()
    with pytest.raises(PayloadWriteError):
        store.put_response(BATCH, idx=0, claim_no=1, body=b"{}")
    assert list(directory.iterdir()) == []


def test_answers_stored_while_the_volume_comes_and_goes_are_on_the_volume(directory: Path) -> None:
    """Its mount point lies bare at any moment of a write, in turns."""
    store = open_store()
    store.put_requests(BATCH, [b"{}"])
    bare = directory.with_name("bare")
    bare.mkdir()
    stop = threading.Event()
    stored: list[int] = []
    swapping = threading.Thread(target=swap_until, args=(stop, directory, bare, stored))
    swapping.start()
    give_up_at = time.monotonic() + DEADLINE_SECONDS
    for attempt in itertools.count():
        if is_stored(store, attempt * 1000):
            stored.append(attempt * 1000)
        # What fails does so at once: a moment without the volume may take hundreds.
        if (attempt >= 300 and stored) or time.monotonic() > give_up_at:
            break
    stop.set()
    swapping.join()
    assert list(bare.iterdir()) == []
    assert 0 < len(stored) <= attempt
    assert all(store.read_responses(BATCH, [(idx, 1) for idx in stored]))


def swap_until(stop: threading.Event, directory: Path, bare: Path, stored: list[int]) -> None:
    """The volume stays for 5 ms. The five syncs of one write may take longer on a busy disk: whenever nothing was
    stored, it stays twice as long, until something is."""
    away = directory.with_name("away")
    stay_seconds = 0.005
    while not stop.is_set():
        before = len(stored)
        directory.rename(away)
        bare.rename(directory)
        stop.wait(0.0005)
        directory.rename(bare)
        away.rename(directory)
        stop.wait(stay_seconds)
        stay_seconds = 0.005 if len(stored) > before else stay_seconds * 2


def is_stored(store: BatchPayloads, idx: int) -> bool:
    """Each in a folder that is made for it."""
    try:
        store.put_response(BATCH, idx=idx, claim_no=1, body=b"{}")
    except PayloadWriteError:
        return False
    return True


def test_a_directory_that_lost_its_marker_is_not_the_store(directory: Path) -> None:
    open_store().check()
    next(directory.glob(".relaybatch-store")).unlink()
    with pytest.raises(PayloadStoreUnavailable, match="marker"):
        open_store().check()


def test_a_directory_of_another_deployment_is_not_the_store(directory: Path) -> None:
    open_store().check()
    (directory / ".relaybatch-store").write_text("another")
    with pytest.raises(PayloadStoreUnavailable, match="not the one"):
        open_store().check()


def test_an_empty_database_adopts_the_directory_that_it_finds(directory: Path) -> None:
    directory.mkdir()
    (directory / ".relaybatch-store").write_text("earlier")
    open_store().check()
    assert PayloadStoreMark.objects.get().value == "earlier"
