"""A store with a fallback: what is read where, what is removed, and what its checks say."""

from __future__ import annotations

import json
import shutil
import uuid
from typing import TYPE_CHECKING

import pytest

from batches.checks import check_payload_fallback, check_payload_url
from batches.payloads import PayloadStoreUnavailable, PayloadWriteError, open_store
from batches.payloads.batch_payloads import BatchPayloads
from batches.payloads.database import DatabasePayloads
from batches.payloads.directory import DirectoryPayloads
from batches.payloads.fallback import FallbackPayloads
from batches.payloads.moving.prepare import prepare_fallback
from relaybatch.readiness import READINESS

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

BATCH = uuid.UUID(int=7)


@pytest.fixture
def old(settings: Settings, tmp_path: Path) -> Path:
    """The fallback's directory, prepared; the store itself is another one."""
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "new")
    settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = (tmp_path / "old").as_uri()
    prepare_fallback()
    return tmp_path / "old"


@pytest.fixture
def older(old: Path) -> DirectoryPayloads:
    return DirectoryPayloads(old)


def test_what_is_not_in_the_store_is_read_from_the_fallback(older: DirectoryPayloads) -> None:
    older.put(f"{BATCH.hex}/requests", [b"old"])
    store = open_store()
    assert store.read_requests(BATCH) == b"old"
    assert store.read_request(BATCH, offset=1, length=2) == b"ld"
    store.put_requests(BATCH, [b"new"])
    assert store.read_requests(BATCH) == b"new"
    assert older.read(f"{BATCH.hex}/requests") == b"old", "it is written to by nobody"


def test_what_moves_between_the_two_reads_is_found(tmp_path: Path) -> None:
    main = DirectoryPayloads(tmp_path / "main")

    class MovedWhenAsked(DirectoryPayloads):
        def read(self, name: str) -> bytes:
            main.put(name, [super().read(name)])
            self.remove_objects([name])
            return super().read(name)

    fallback = MovedWhenAsked(tmp_path / "fallback")
    fallback.put("folder/requests", [b"{}"])
    assert FallbackPayloads(main, fallback).read("folder/requests") == b"{}"


def test_removals_and_the_list_of_folders_are_of_both(older: DirectoryPayloads) -> None:
    other = uuid.UUID(int=8)
    older.put(f"{BATCH.hex}/requests", [b"{}"])
    older.put(f"{other.hex}/requests", [b"{}"])
    store = open_store()
    store.put_response(BATCH, idx=0, claim_no=1, body=b"{}")
    assert sorted(store.folders()) == [BATCH.hex, other.hex]
    store.discard(BATCH)
    assert list(store.folders()) == [other.hex]


def test_a_removal_that_fails_in_the_fallback_is_tried_in_the_store_and_fails(tmp_path: Path) -> None:
    class Refusing(DirectoryPayloads):
        def remove_folder(self, folder: str) -> None:
            raise PayloadWriteError("no")

    main, fallback = DirectoryPayloads(tmp_path / "main"), Refusing(tmp_path / "fallback")
    main.put("folder/requests", [b"{}"])
    with pytest.raises(PayloadWriteError):
        FallbackPayloads(main, fallback).remove_folder("folder")
    assert list(main.folders()) == []


def test_a_response_is_stored_in_a_directory_whose_batch_is_still_in_the_fallback(
    older: DirectoryPayloads, tmp_path: Path
) -> None:
    older.put(f"{BATCH.hex}/requests", [b"{}"])
    open_store().put_response(BATCH, idx=0, claim_no=1, body=b"answer")
    assert (tmp_path / "new" / BATCH.hex / "responses" / "0" / "0-1").read_bytes() == b"answer"


def test_not_where_the_volume_of_that_directory_is_not_mounted(
    older: DirectoryPayloads, tmp_path: Path
) -> None:
    store = open_store()
    (tmp_path / "new").rename(tmp_path / "unmounted")
    (tmp_path / "new").mkdir()
    with pytest.raises(PayloadWriteError):
        store.put_response(BATCH, idx=0, claim_no=1, body=b"{}")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_folder_counts_as_removed_only_while_both_stores_are_there(old: Path) -> None:
    store = open_store()
    store.check()
    old.rename(old.with_name("unmounted"))
    with pytest.raises(PayloadStoreUnavailable, match="fallback payload store has no marker"):
        store.check()
    old.mkdir()
    (old / ".relaybatch-store").write_text("another")
    with pytest.raises(PayloadStoreUnavailable, match="fallback payload store is another database's"):
        store.check()


def test_readiness_knows_the_fallback(client: Client, old: Path) -> None:
    assert json.loads(client.get("/readyz").content)["checks"]["payload_store"] == "ok"
    shutil.rmtree(old)
    READINESS.clear_cache()
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "fallback payload store has no marker" in json.loads(response.content)["checks"]["payload_store"]
    assert not old.exists(), "nobody made another one in its place"


def test_the_system_checks_know_the_fallback(settings: Settings, old: Path) -> None:
    assert [*check_payload_fallback(), *check_payload_url()] == []
    shutil.rmtree(old)
    [missing] = check_payload_fallback()
    assert (missing.id, "is missing" in missing.msg) == ("batches.E004", True)
    settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = f"file://{settings.RELAY_BATCH_PAYLOAD_DIR}"
    [same] = check_payload_fallback()
    assert same.msg == "RELAY_BATCH_PAYLOAD_FALLBACK_URL: it is the payload store itself"
    settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = "az://container/prefix"
    [unopened] = check_payload_url()
    assert unopened.msg == "RELAY_BATCH_PAYLOAD_FALLBACK_URL: the payload store cannot be opened"


def test_leftovers_of_killed_writers_go_and_a_writer_at_work_fails(old: Path) -> None:
    store = BatchPayloads(DatabasePayloads())
    with store.open_requests_writer(BATCH) as writer:
        writer.write(bytes(3 << 20))
        store.remove_unfinished_requests(BATCH)
        with pytest.raises(PayloadWriteError):
            writer.commit()
    assert list(store.folders()) == []
