"""`manage.py move_payloads`: what it moves, what it refuses, and what happens beside it."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from batches.completion.delete import delete_batch
from batches.models import Batch, PayloadStoreMark
from batches.payloads import open_store
from batches.payloads.moving.copy_object import PIECE_BYTES
from batches.payloads.opening import open_fallback_store, open_main_store
from batches.sweeper.cleanup import Cleanup
from batches.sweeper.orphaned_payloads import remove_orphaned_payloads
from tests.support.calls.shell import Shell, shell
from tests.support.rows.item_outcomes import complete_inline, end
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.object_server import ObjectServer, StoreRequest, WrongAnswer

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from pytest_django import Settings

    from batches.payloads.store import PayloadStore

pytestmark = pytest.mark.django_db(transaction=True)

__all__ = ["shell"]


@dataclass
class Stores:
    settings: Settings
    shell: Shell

    @property
    def new(self) -> PayloadStore:
        return open_main_store()

    @property
    def old(self) -> PayloadStore:
        store = open_fallback_store()
        assert store
        return store

    def swap(self, new_url: str, *, is_prepared: bool = False) -> None:
        """As the procedure says: the new store is the fallback first, and is marked."""
        old_url = self.settings.RELAY_BATCH_PAYLOAD_URL
        self.settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = new_url
        assert self.shell.json_result("move_payloads", "--prepare") == {"prepared": not is_prepared}
        self.settings.RELAY_BATCH_PAYLOAD_URL = new_url
        self.settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = old_url
        open_store().check()


@pytest.fixture
def directory_url(settings: Settings, tmp_path: Path) -> str:
    """Where the payloads are at first."""
    settings.RELAY_BATCH_PAYLOAD_URL = (tmp_path / "old").as_uri()
    open_store().check()
    return (tmp_path / "old").as_uri()


@pytest.fixture
def stores(settings: Settings, shell: Shell, directory_url: str) -> Stores:
    return Stores(settings, shell)


@pytest.fixture(params=["postgres", "s3", "directory"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        server: ObjectServer = request.getfixturevalue("object_server")
        return server.new_bucket()
    return "postgres:" if request.param == "postgres" else (tmp_path / "new").as_uri()


def old_id() -> uuid.UUID:
    milliseconds = int(time.time() * 1000) - 2 * 3600 * 1000
    return uuid.UUID(int=milliseconds << 80 | 7 << 76 | 0b10 << 62 | uuid.uuid4().int >> 70)


def contents(store: PayloadStore) -> dict[str, bytes]:
    objects = [stored for folder in store.folders() for stored in store.objects(folder)]
    return {stored.name: store.read(stored.name) for stored in objects}


def fill(catalog: SimpleNamespace) -> dict[str, bytes]:
    """A batch with a large response and an empty one, and a file of more than a piece."""
    batch = submit(catalog, chat_body("one"), chat_body("two"))
    store = open_store()
    store.put_response(batch.id, idx=0, claim_no=1, body=bytes(PIECE_BYTES) + b"end")
    store.put_response(batch.id, idx=1, claim_no=1, body=b"")
    with store.open_file_writer(old_id()) as writer:
        writer.write(b"line\n" * PIECE_BYTES)
        writer.commit()
    return contents(open_main_store())


def test_everything_moves_and_the_old_store_is_empty(
    stores: Stores, rows: SimpleNamespace, new_url: str
) -> None:
    filled = fill(rows)
    stores.swap(new_url)
    sizes = sum(map(len, filled.values()))
    assert stores.shell.json_result("move_payloads") == {
        "folders": 2,
        "objects": 4,
        "bytes": sizes,
        "not_moved": 0,
    }
    assert contents(stores.new) == filled
    assert list(stores.old.folders()) == []
    again = stores.shell.json_result("move_payloads")
    assert again == {"folders": 0, "objects": 0, "bytes": 0, "not_moved": 0}
    assert contents(stores.new) == filled


def test_back_again(stores: Stores, rows: SimpleNamespace, new_url: str, directory_url: str) -> None:
    filled = fill(rows)
    for url in (new_url, directory_url):
        stores.swap(url, is_prepared=url == directory_url)
        stores.shell.json_result("move_payloads")
    assert contents(stores.new) == filled
    assert list(stores.old.folders()) == []


def test_what_the_new_store_has_already_stays(stores: Stores, rows: SimpleNamespace) -> None:
    """Of a run that was killed, and of a worker that answered after the swap."""
    filled = fill(rows)
    stores.swap("postgres:")
    name, body = next(iter(filled.items()))
    stores.new.put(name, [body])
    batch_id = Batch.objects.get().id
    open_store().put_response(batch_id, idx=1, claim_no=2, body=b"later")
    stores.shell.json_result("move_payloads")
    assert contents(stores.new) == {**filled, f"{batch_id.hex}/responses/0/1-2": b"later"}


def test_what_the_new_store_has_in_another_form_is_written_again(
    stores: Stores, rows: SimpleNamespace
) -> None:
    filled = fill(rows)
    stores.swap("postgres:")
    for name, body in filled.items():
        stores.new.put(name, [body[:-1] + b"?" if body else b"?"])
    stores.shell.json_result("move_payloads")
    assert contents(stores.new) == filled


def test_what_killed_writers_left_goes_with_its_folder(stores: Stores) -> None:
    folder = old_id().hex
    open_main_store().put(f"{folder}/requests", [b"{}"])
    path = f"{folder}/requests~killed"
    open_main_store().put(path, [b"half"])
    stores.swap("postgres:")
    assert stores.shell.json_result("move_payloads")["objects"] == 1
    assert contents(stores.new) == {f"{folder}/requests": b"{}"}
    assert list(stores.old.folders()) == []


def test_what_is_not_ours_is_left_alone(stores: Stores) -> None:
    open_main_store().put("lost+found/file", [b"theirs"])
    stores.swap("postgres:")
    assert stores.shell.json_result("move_payloads")["folders"] == 0
    assert stores.old.read("lost+found/file") == b"theirs"


def no_fallback(stores: Stores) -> str:
    stores.settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = ""
    return "RELAY_BATCH_PAYLOAD_FALLBACK_URL is not set"


def the_same_place(stores: Stores) -> str:
    """By a URL of another form."""
    url = stores.settings.RELAY_BATCH_PAYLOAD_URL
    stores.settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = url.replace("file://", "file://localhost") + "/../old"
    return "RELAY_BATCH_PAYLOAD_FALLBACK_URL is the payload store itself"


def another_database(stores: Stores) -> str:
    stores.settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = "postgres:"
    stores.old.write_marker("another")
    return "the fallback payload store is another database's: its marker says so"


def somebody_elses(stores: Stores) -> str:
    stores.settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = "postgres:"
    stores.old.put("folder/requests", [b"{}"])
    return "the fallback payload store holds folders and has no marker: whose are they?"


@pytest.mark.parametrize("case", [no_fallback, the_same_place, another_database, somebody_elses])
def test_a_store_that_may_be_somebody_elses_is_not_prepared(stores: Stores, case: object) -> None:
    assert callable(case)
    expected = case(stores)
    assert stores.shell.error_line("move_payloads", "--prepare") == expected
    before = contents(stores.new)
    stores.shell.error_line("move_payloads")
    assert contents(stores.new) == before


def test_preparing_twice_changes_nothing(stores: Stores) -> None:
    stores.settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = "postgres:"
    assert stores.shell.json_result("move_payloads", "--prepare") == {"prepared": True}
    assert stores.shell.json_result("move_payloads", "--prepare") == {"prepared": False}


def test_a_store_that_is_not_prepared_is_not_moved(stores: Stores) -> None:
    stores.settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = "postgres:"
    assert "has no marker" in stores.shell.error_line("move_payloads")


def failing_puts(request: StoreRequest) -> WrongAnswer | None:
    is_object = "/prefix/" in request.path and ".relaybatch" not in request.path
    return WrongAnswer("403 Forbidden") if is_object and request.method in ("PUT", "POST") else None


def lost_puts(request: StoreRequest) -> WrongAnswer | None:
    """The server says that it stored what it did not store."""
    if request.method != "PUT" or ".relaybatch" in request.path:
        return None
    return WrongAnswer("200 OK", headers=(("ETag", '"x"'),))


def changed_gets(request: StoreRequest) -> WrongAnswer | None:
    if request.method != "GET" or not request.path.endswith("/requests"):
        return None
    size = len(chat_body("one") + chat_body("two"))
    of_object = (("ETag", '"x"'), ("Last-Modified", "Tue, 01 Dec 2026 17:00:00 GMT"))
    length = (("Content-Length", str(size)), ("Content-Range", f"bytes 0-{size - 1}/{size}"))
    return WrongAnswer("206 Partial Content", b"?" * size, (*of_object, *length))


@pytest.mark.parametrize("wrong", [failing_puts, lost_puts, changed_gets])
def test_what_the_new_store_does_not_give_back_stays_in_the_old_one(
    stores: Stores, rows: SimpleNamespace, object_server: ObjectServer, wrong: object
) -> None:
    assert callable(wrong)
    batch = submit(rows, chat_body("one"), chat_body("two"))
    filled = contents(stores.new)
    stores.swap(object_server.new_bucket())
    with object_server.answering(wrong):
        code, out, err = stores.shell.run("move_payloads", "--json")
    assert (code, json.loads(out)["not_moved"], json.loads(out)["objects"]) == (1, 1, 0)
    assert err.startswith(f"not everything was moved: {batch.id.hex}: ")
    assert contents(stores.old) == filled
    assert contents(stores.new) == {}, "else readers would get what is wrong"
    stores.shell.json_result("move_payloads")
    assert contents(stores.new) == filled


def test_what_the_new_store_does_not_list_is_not_removed_from_the_old_one(
    stores: Stores, rows: SimpleNamespace, object_server: ObjectServer
) -> None:
    batch = submit(rows)
    filled = contents(stores.new)
    stores.swap(object_server.new_bucket())

    def empty_listing(request: StoreRequest) -> WrongAnswer | None:
        """A page that is no listing: obstore reads it as an empty one."""
        is_listing = "list-type" in request.query and batch.id.hex in request.query
        return WrongAnswer("200 OK", b"<html>Please sign in</html>") if is_listing else None

    with object_server.answering(empty_listing):
        code, _, err = stores.shell.run("move_payloads", "--json")
    assert (code, "is not in the new store as it was written" in err) == (1, True)
    assert contents(stores.old) == filled


def test_a_store_that_goes_away_ends_the_run(
    stores: Stores, rows: SimpleNamespace, object_server: ObjectServer
) -> None:
    for _ in range(5):
        submit(rows)
    filled = contents(stores.new)
    stores.swap(object_server.new_bucket())
    puts: list[StoreRequest] = []

    def away_after_two(request: StoreRequest) -> WrongAnswer | None:
        puts.extend([request] if request.method == "PUT" and "requests" in request.path else [])
        return WrongAnswer("403 Forbidden") if len(puts) > 2 else None

    with object_server.answering(away_after_two):
        code, out, err = stores.shell.run("move_payloads", "--json")
    assert (code, json.loads(out)["folders"]) == (1, 2)
    assert len(puts) == 3, "the others are not tried"
    assert "the payload store cannot be read" in err
    assert {**contents(stores.old), **contents(stores.new)} == filled


def test_a_batch_that_is_deleted_while_it_is_copied_is_gone_from_both(
    stores: Stores, rows: SimpleNamespace, object_server: ObjectServer
) -> None:
    """Its objects are removed between the reading of one and its writing."""
    batch = submit(rows)
    complete_inline(batch, 0, b"{}")
    end(batch)
    open_store().put_response(batch.id, idx=0, claim_no=9, body=b"x")
    stores.swap(object_server.new_bucket())
    removed: list[StoreRequest] = []

    def delete_meanwhile(request: StoreRequest) -> None:
        if request.method == "PUT" and batch.id.hex in request.path and not removed:
            removed.append(request)
            open_store().discard(batch.id)
            Batch.objects.filter(id=batch.id).update(deleted_at=Now())
            connection.close()  # of the server's thread

    with object_server.answering(delete_meanwhile):
        stores.shell.json_result("move_payloads")
    assert removed
    assert contents(stores.new) == contents(stores.old) == {}


def test_what_an_old_process_writes_while_its_folder_moves_is_moved_too(
    stores: Stores, rows: SimpleNamespace, object_server: ObjectServer
) -> None:
    batch = submit(rows)
    stores.swap(object_server.new_bucket())
    late: list[str] = []

    def write_meanwhile(request: StoreRequest) -> None:
        if request.method == "PUT" and batch.id.hex in request.path and not late:
            late.append(f"{batch.id.hex}/responses/0/0-1")
            stores.old.put(late[0], [b"late"])

    with object_server.answering(write_meanwhile):
        assert stores.shell.json_result("move_payloads")["objects"] == 2
    assert stores.new.read(late[0]) == b"late"
    assert list(stores.old.folders()) == []


def test_a_folder_without_a_batch_is_moved_and_then_removed_by_the_search_for_orphans(
    stores: Stores, settings: Settings
) -> None:
    PayloadStoreMark.objects.update(created_at=F("created_at") - timedelta(hours=3))
    open_store().put_requests(old_id(), [b"{}"])
    stores.swap("postgres:")
    stores.shell.json_result("move_payloads")
    assert len(contents(stores.new)) == 1
    remove_orphaned_payloads()
    assert contents(stores.new) == {}


def test_a_batch_is_removed_from_both_stores_by_the_sweeper(stores: Stores, rows: SimpleNamespace) -> None:
    batch = submit(rows)
    stores.swap("postgres:")
    complete_inline(batch, 0, b"{}")
    end(batch)
    batch.refresh_from_db()
    delete_batch(batch)
    Cleanup().run()
    assert contents(stores.old) == contents(stores.new) == {}
    assert not Batch.objects.exists()
