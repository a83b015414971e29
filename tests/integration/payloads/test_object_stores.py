"""A real S3 server that refuses, fails, lies or hangs: every outcome is an error of payloads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from batches.models import PayloadStoreMark
from batches.payloads import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError, open_store
from batches.payloads.object_client import RETRIES
from batches.payloads.object_store import ObjectPayloads
from batches.payloads.object_writer import PART_BYTES
from tests.support.servers.object_server import StoreRequest, WrongAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import Settings

    from tests.support.servers.object_server import ObjectServer

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "folder/requests"
TRIES = 1 + RETRIES["max_retries"]
OF_AN_OBJECT = (("ETag", '"x"'), ("Last-Modified", "Tue, 01 Dec 2026 17:00:00 GMT"))

ALWAYS = {
    "500": WrongAnswer("500 Internal Server Error", b"<Error><Code>InternalError</Code></Error>"),
    "503": WrongAnswer("503 Slow Down", b"<Error><Code>SlowDown</Code></Error>"),
    "wrong secret": WrongAnswer("403 Forbidden", b"<Error><Code>SignatureDoesNotMatch</Code></Error>"),
    "no key": WrongAnswer("401 Unauthorized", b"<Error><Code>InvalidAccessKeyId</Code></Error>"),
    "no text": WrongAnswer("400 Bad Request"),
    "elsewhere": WrongAnswer("301 Moved Permanently", b"", (("Location", "http://127.0.0.1:9/"),)),
    "no bucket": WrongAnswer("404 Not Found", b"<Error><Code>NoSuchBucket</Code></Error>"),
}


@pytest.fixture
def store(object_server: ObjectServer) -> ObjectPayloads:
    return ObjectPayloads.from_url(object_server.new_bucket())


def expect_errors(store: ObjectPayloads) -> None:
    with pytest.raises(PayloadWriteError):
        store.put(NAME, [b"{}"])
    with pytest.raises(PayloadWriteError):
        store.put(NAME, [bytes(PART_BYTES), b"{}"])
    with pytest.raises(PayloadReadError):
        store.read(NAME)
    with pytest.raises(PayloadReadError):
        store.read_range(NAME, offset=0, length=1)
    with pytest.raises(PayloadReadError):
        store.read_range(NAME, offset=0, length=0)
    with pytest.raises(PayloadWriteError):
        store.remove_folder("folder")
    with pytest.raises(PayloadWriteError):
        store.remove_objects([NAME])
    with pytest.raises(PayloadStoreUnavailable):
        list(store.folders())
    with pytest.raises(PayloadStoreUnavailable):
        list(store.objects("folder"))
    with pytest.raises(PayloadWriteError):
        store.write_marker("mark")


@pytest.mark.parametrize("answer", ALWAYS.values(), ids=ALWAYS)
def test_an_answer_that_is_an_error_is_an_error_of_payloads(
    store: ObjectPayloads, object_server: ObjectServer, answer: WrongAnswer
) -> None:
    store.put(NAME, [b"{}"])
    with object_server.answering(lambda _: answer):
        expect_errors(store)
    assert store.read(NAME) == b"{}"


def test_a_bucket_that_does_not_exist_is_no_store(object_server: ObjectServer, settings: Settings) -> None:
    store = ObjectPayloads.from_url("s3://never-made/prefix")
    expect_errors(store)
    settings.RELAY_BATCH_PAYLOAD_URL = "s3://never-made/prefix"
    with pytest.raises(PayloadStoreUnavailable):
        open_store().check()
    assert not PayloadStoreMark.objects.exists(), "nothing was agreed on"


def short_body(_: StoreRequest) -> WrongAnswer:
    return WrongAnswer("200 OK", b"hel", (("Content-Length", "5"), *OF_AN_OBJECT))


def another_range(_: StoreRequest) -> WrongAnswer:
    length = (("Content-Length", "3"), ("Content-Range", "bytes 0-2/5"))
    return WrongAnswer("206 Partial Content", b"hel", (*length, *OF_AN_OBJECT))


def sign_in_page(_: StoreRequest) -> WrongAnswer:
    return WrongAnswer("200 OK", b"<html>Please sign in</html>")


@pytest.mark.parametrize("wrong", [short_body, another_range, sign_in_page])
def test_a_wrong_body_is_unreadable(
    store: ObjectPayloads, object_server: ObjectServer, wrong: Callable[[StoreRequest], WrongAnswer]
) -> None:
    store.put(NAME, [b"hello"])
    with object_server.answering(wrong):
        with pytest.raises(PayloadReadError):
            store.read_range(NAME, offset=1, length=4)
        if wrong is not another_range:  # for which nobody asked
            with pytest.raises(PayloadReadError):
                store.read(NAME)


def failed_part(request: StoreRequest) -> WrongAnswer | None:
    return WrongAnswer("500 Internal Server Error") if "partNumber=2" in request.query else None


def failed_completion(request: StoreRequest) -> WrongAnswer | None:
    """S3 says so with a 200."""
    if request.method != "POST" or "uploadId" not in request.query:
        return None
    return WrongAnswer("200 OK", b"<Error><Code>InternalError</Code><Message>x</Message></Error>")


@pytest.mark.parametrize("wrong", [failed_part, failed_completion])
def test_an_upload_that_fails_in_its_middle_or_at_its_end_leaves_what_was_there(
    store: ObjectPayloads, object_server: ObjectServer, wrong: Callable[[StoreRequest], WrongAnswer | None]
) -> None:
    store.put(NAME, [b"before"])

    def write() -> None:
        with store.open_writer(NAME) as writer:
            for _ in range(3):
                writer.write(bytes(PART_BYTES))
            writer.commit()

    with object_server.answering(wrong), pytest.raises(PayloadWriteError):
        write()
    assert store.read(NAME) == b"before"


@pytest.mark.parametrize("key", ["prefix/folder/requests", "what nobody named"])
def test_an_object_that_the_store_refuses_to_remove_is_an_error(
    store: ObjectPayloads, object_server: ObjectServer, key: str
) -> None:
    """S3 says so with a 200, object by object. obstore panics when it is another object."""
    store.put(NAME, [b"{}"])
    error = f"<Error><Key>{key}</Key><Code>AccessDenied</Code><Message>x</Message></Error>"
    refusal = f"<DeleteResult>{error}</DeleteResult>"

    def wrong(request: StoreRequest) -> WrongAnswer | None:
        return WrongAnswer("200 OK", refusal.encode()) if request.query.startswith("delete") else None

    with object_server.answering(wrong):
        with pytest.raises(PayloadWriteError):
            store.remove_folder("folder")
        with pytest.raises(PayloadWriteError):
            store.remove_objects([NAME])


def test_a_folder_of_more_than_a_page_of_objects_is_listed_and_removed_whole(store: ObjectPayloads) -> None:
    names = [f"folder/responses/{number // 1000}/{number}-1" for number in range(1005)]
    for name in names:
        store.put(name, [b"{}"])
    assert sorted(stored.name for stored in store.objects("folder")) == sorted(names)
    store.remove_folder("folder")
    assert list(store.objects("folder")) == []


def test_a_request_is_tried_four_times_in_all(store: ObjectPayloads, object_server: ObjectServer) -> None:
    """obstore's own 11 tries within 3 minutes would hold a web process's thread."""
    with object_server.answering(lambda _: ALWAYS["503"]) as requests:
        with pytest.raises(PayloadReadError):
            store.read(NAME)
        assert len(requests) == TRIES == 4


def test_what_hangs_is_given_up_at_a_timeout_that_a_variable_may_set(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_TIMEOUT", "100ms")
    store = ObjectPayloads.from_url(object_server.new_bucket())

    def hang(_: StoreRequest) -> None:
        time.sleep(1)

    with object_server.answering(hang) as requests:
        with pytest.raises(PayloadReadError):
            store.read(NAME)
        assert len(requests) == TRIES


def test_small_parts_are_one_request(store: ObjectPayloads, object_server: ObjectServer) -> None:
    with object_server.answering(lambda _: None) as requests:
        store.put(NAME, [b"{}"] * 1000)
        assert [one.method for one in requests] == ["PUT"]


def test_plain_http_is_refused_unless_the_variable_allows_it(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = object_server.new_bucket()
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(PayloadWriteError):
        ObjectPayloads.from_url(url).put(NAME, [b"{}"])
