"""What every payload store promises (batches/payloads/store.py), whichever kind it is."""

from __future__ import annotations

import contextlib
import threading
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from django.db import DatabaseError, connection

from batches.payloads import PayloadReadError, PayloadWriteError
from batches.payloads.database_writer import CHUNK_BYTES
from batches.payloads.errors import PayloadError
from batches.payloads.object_writer import PART_BYTES

if TYPE_CHECKING:
    from batches.payloads.store import PayloadStore

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "folder/requests"
# More than two parts of a multipart upload, and than any piece that a store cuts.
LARGE = bytes(range(256)) * ((2 * PART_BYTES + CHUNK_BYTES) // 256) + b"end"


def names(store: PayloadStore, folder: str = "folder") -> list[tuple[str, int]]:
    return sorted(store.objects(folder))


def write(store: PayloadStore, body: bytes, *, name: str = NAME, piece_bytes: int = 1 << 18) -> None:
    with store.open_writer(name) as writer:
        for start in range(0, len(body), piece_bytes):
            writer.write(body[start : start + piece_bytes])
        writer.commit()


def test_parts_become_one_object(store: PayloadStore) -> None:
    store.put(NAME, [b'{"a":1}', memoryview(b'{"b":2}')])
    assert store.read(NAME) == b'{"a":1}{"b":2}'
    assert store.read_range(NAME, offset=7, length=7) == b'{"b":2}'


@pytest.mark.parametrize("parts", [[], [b""], [LARGE], [LARGE, b"x"]], ids=["none", "empty", "one", "two"])
def test_any_number_of_bytes_comes_back(store: PayloadStore, parts: list[bytes]) -> None:
    store.put(NAME, parts)
    body = b"".join(parts)
    assert store.read(NAME) == body
    assert names(store) == [(NAME, len(body))]


@pytest.mark.parametrize("offset", [0, CHUNK_BYTES - 3, CHUNK_BYTES, 2 * CHUNK_BYTES - 1])
def test_a_range_may_cross_the_pieces_that_a_store_cuts(store: PayloadStore, offset: int) -> None:
    body = bytes(range(256)) * (CHUNK_BYTES // 100)
    store.put(NAME, [body])
    assert store.read_range(NAME, offset=offset, length=7) == body[offset : offset + 7]


@pytest.mark.parametrize(("offset", "length"), [(0, 3), (1, 2), (2, 1), (5, 1)])
def test_a_range_that_is_not_all_there_is_unreadable(store: PayloadStore, offset: int, length: int) -> None:
    store.put(NAME, [b"{}"])
    with pytest.raises(PayloadReadError):
        store.read_range(NAME, offset=offset, length=length)


def test_no_bytes_of_an_object_that_is_there_are_none(store: PayloadStore) -> None:
    store.put(NAME, [b""])
    assert store.read_range(NAME, offset=0, length=0) == b""
    with pytest.raises(PayloadReadError):
        store.read_range("folder/other", offset=0, length=0)


def test_what_is_missing_is_unreadable(store: PayloadStore) -> None:
    with pytest.raises(PayloadReadError):
        store.read(NAME)
    with pytest.raises(PayloadReadError):
        store.read_range(NAME, offset=0, length=1)


def test_storing_again_replaces_the_whole_object(store: PayloadStore) -> None:
    store.put(NAME, [bytes(2 * CHUNK_BYTES + 1)])
    store.put(NAME, [b"shorter"])
    assert store.read(NAME) == b"shorter"
    write(store, bytes(2 * CHUNK_BYTES))
    write(store, b"short")
    assert store.read(NAME) == b"short"
    assert names(store) == [(NAME, 5)]


@pytest.mark.parametrize("body", [b"", b"small", LARGE], ids=["empty", "small", "large"])
def test_what_a_writer_wrote_is_there_after_its_commit_and_not_before(
    store: PayloadStore, body: bytes
) -> None:
    with store.open_writer(NAME) as writer:
        writer.write(body[:5])
        writer.write(memoryview(body)[5:])
        assert names(store) == []
        with pytest.raises(PayloadReadError):
            store.read(NAME)
        writer.commit()
    assert store.read(NAME) == body


def test_a_writer_that_is_left_without_a_commit_leaves_nothing(store: PayloadStore) -> None:
    with contextlib.suppress(ZeroDivisionError), store.open_writer(NAME) as writer:
        writer.write(LARGE)
        raise ZeroDivisionError
    with store.open_writer(NAME) as writer:
        writer.write(b"small")
    assert names(store) == []
    with pytest.raises(PayloadReadError):
        store.read(NAME)


def test_a_writer_that_gives_up_leaves_the_object_that_was_there(store: PayloadStore) -> None:
    store.put(NAME, [b"before"])
    with store.open_writer(NAME) as writer:
        writer.write(LARGE)
    assert store.read(NAME) == b"before"


def test_two_writers_of_one_name_do_not_meet(store: PayloadStore) -> None:
    with store.open_writer(NAME) as one, store.open_writer(NAME) as other:
        for _ in range(3):
            one.write(b"1" * CHUNK_BYTES)
            other.write(b"2" * (CHUNK_BYTES + 1))
        one.commit()
        assert store.read(NAME) == b"1" * 3 * CHUNK_BYTES
        other.commit()
        assert store.read(NAME) == b"2" * 3 * (CHUNK_BYTES + 1)


def test_writers_that_commit_at_the_same_moment_all_succeed(store: PayloadStore) -> None:
    """Each of them replaces the object whole."""
    bodies = [bytes([number]) * (CHUNK_BYTES + number) for number in range(4)]
    together = threading.Barrier(len(bodies))
    failed: list[BaseException] = []

    def write_one(body: bytes) -> None:
        try:
            with store.open_writer(NAME) as writer:
                writer.write(body)
                together.wait(20)
                writer.commit()
        except (PayloadError, DatabaseError, threading.BrokenBarrierError) as error:
            failed.append(error)
        finally:
            connection.close()

    for _ in range(5):
        threads = [threading.Thread(target=write_one, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
    assert store.read(NAME) in bodies


def test_a_large_object_takes_the_same_memory_as_a_small_one(store: PayloadStore, kind: str) -> None:
    """Python's part of it: the pieces that are held at a time."""
    piece = bytes(1 << 20)
    tracemalloc.start()
    try:
        with store.open_writer(NAME) as writer:
            for _ in range(64):
                writer.write(piece)
            if kind not in ("s3", "fallback"):  # there, the server is in this process
                assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_removing_the_unfinished_ends_whoever_still_writes(store: PayloadStore, kind: str) -> None:
    store.put("folder/requests2", [b"another's name"])
    with store.open_writer(NAME) as writer, store.open_writer("folder/requests2") as other:
        writer.write(bytes(2 * CHUNK_BYTES))
        other.write(b"still another's")
        store.remove_unfinished(NAME)
        if kind in ("s3", "fallback"):
            writer.commit()  # an upload is no object: nothing was removed
        else:
            with pytest.raises(PayloadWriteError):
                writer.commit()
            assert names(store) == [("folder/requests2", 14)]
        other.commit()
    assert store.read("folder/requests2") == b"still another's"


def test_removing_the_unfinished_leaves_what_is_complete(store: PayloadStore) -> None:
    store.remove_unfinished(NAME)
    store.put(NAME, [b"{}"])
    store.remove_unfinished(NAME)
    assert store.read(NAME) == b"{}"


def test_a_folder_is_removed_with_all_that_is_in_it_and_no_other(store: PayloadStore) -> None:
    for name in (NAME, "folder/responses/0/1-1", "folder2/requests", "fold/requests"):
        store.put("/".join([name.split("/")[0], "requests"]), [b"{}"])
        store.put(name, [b"{}"])
    with store.open_writer("folder/content") as unfinished:
        unfinished.write(bytes(2 * CHUNK_BYTES))
        store.remove_folder("folder")
    store.remove_folder("folder")
    store.remove_folder("never")
    assert sorted(store.folders()) == ["fold", "folder2"]
    assert names(store) == []
    assert store.read("folder2/requests") == b"{}"


def test_a_folder_is_named_once_and_whatever_is_in_it(store: PayloadStore) -> None:
    assert list(store.folders()) == []
    for folder in ("one", "two"):
        store.put(f"{folder}/requests", [bytes(CHUNK_BYTES + 1)])
        store.put(f"{folder}/responses/0/0-1", [b"{}"])
    store.write_marker("mark")
    assert sorted(store.folders()) == ["one", "two"]
    assert names(store, "one") == [("one/requests", CHUNK_BYTES + 1), ("one/responses/0/0-1", 2)]
    assert names(store, "three") == []


def test_objects_are_removed_one_by_one_and_their_folders_when_they_are_empty(store: PayloadStore) -> None:
    store.put(NAME, [b"{}"])
    store.put("folder/responses/0/0-1", [b"{}"])
    store.remove_objects([NAME, "folder/never"])
    assert names(store) == [("folder/responses/0/0-1", 2)]
    store.remove_objects([])
    store.remove_objects([NAME, "folder/responses/0/0-1"])
    assert names(store) == []
    assert list(store.folders()) == []


def test_the_marker_is_what_was_written_last(store: PayloadStore) -> None:
    assert store.read_marker() is None
    store.write_marker("first")
    store.write_marker("2")
    assert store.read_marker() == "2"
    store.check_free_space()
