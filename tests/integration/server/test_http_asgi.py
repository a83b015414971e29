"""The same API under an ASGI server."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import AsyncClient

from batches.models import Batch
from batches.payloads import open_store
from relaybatch.http.body.body_limits import max_sent_bytes
from tests.support.rows.item_outcomes import complete
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers import asgi
from tests.support.servers.asgi import MAX_PARTS, AsgiRequest, WatchedStream
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)
BODY = b'{"shape":"openai","requests":[' + chat_body() + b"]}"
PIECE = bytes(1 << 18)


@pytest.fixture
def watched(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> WatchedStream:
    settings.ROOT_URLCONF = "tests.support.servers.asgi"
    stream = WatchedStream()
    monkeypatch.setattr(asgi, "watched", stream)
    return stream


@pytest.fixture
def low_limits(settings: Settings) -> int:
    """The item filter's limit is the largest then; a gzip body may be a little larger."""
    settings.RELAY_MAX_REQUEST_BYTES = settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES = 1 << 20
    settings.RELAY_MAX_FILE_BYTES = 1 << 20
    return max_sent_bytes()


def test_a_submission_under_asgi_is_accepted_and_can_be_read(rows: SimpleNamespace) -> None:
    client = AsyncClient()
    created = async_to_sync(client.post)("/v1/batches", BODY, content_type="text/plain", headers=rows.headers)
    assert created.status_code == 202
    batch = Batch.objects.get()
    status = async_to_sync(client.get)(f"/v1/batches/{batch.id}/", headers=rows.headers)
    assert json.loads(status.content)["ID"] == str(batch.id)


def test_a_submission_in_pieces_is_accepted(rows: SimpleNamespace) -> None:
    created = AsgiRequest("/v1/batches", "POST", rows.headers, [BODY[:7], BODY[7:]]).run()
    assert (created.status, created.json["total_items"]) == (202, 1)


def test_a_part_is_sent_before_the_next_one_is_made(watched: WatchedStream) -> None:
    made_when_sent: list[int] = []
    answer = AsgiRequest("/stream", on_part=lambda _: made_when_sent.append(watched.made)).run()
    assert made_when_sent == list(range(1, MAX_PARTS + 1))
    assert set(answer.parts) == {answer.answer_headers["request-id"].encode()}


def test_results_are_made_as_the_client_takes_them(rows: SimpleNamespace) -> None:
    batch = submit(rows, *[chat_body()] * 12)
    for idx in range(12):
        complete(batch, idx, b'{"t":"' + b"x" * 1_000_000 + b'"}')
    # What is deleted after the first part was not read ahead.
    answer = AsgiRequest(
        f"/v1/batches/{batch.id}/results?include=error_code",
        headers=rows.headers,
        on_part=lambda _: open_store().discard(batch.id),
    ).run()
    results = answer.json["results"]
    assert "response" in results[0]
    assert results[11]["error_code"] == "load_result_failed"


@pytest.mark.parametrize(
    ("path", "beginning"),
    [("/v1/usage/events?format=csv", b"id,at,owner"), ("/static/admin/css/base.css", b"/*")],
)
def test_every_stream_is_one_that_django_need_not_make_whole(
    rows: SimpleNamespace, path: str, beginning: bytes
) -> None:
    answer = AsgiRequest(path, headers=rows.headers).run()  # Django warns, and warnings are errors
    assert answer.status == 200
    assert answer.content.startswith(beginning)


def test_a_client_that_leaves_while_a_part_is_sent_closes_the_stream(watched: WatchedStream) -> None:
    AsgiRequest("/stream", on_part=lambda _: watched.made < 3).run()
    assert watched.closed
    assert watched.made == 3


def test_a_client_that_leaves_while_a_part_is_made_closes_the_stream(watched: WatchedStream) -> None:
    exchange = AsgiRequest("/stream")
    watched.on_made = lambda made: exchange.disconnect() if made == 3 else None
    exchange.run()
    assert watched.closed
    assert 3 <= watched.made < MAX_PARTS


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/v1/batches", 400, "invalid_request_error"),
        ("/v1/messages/batches", 413, "request_too_large"),
    ],
)
@pytest.mark.parametrize("announced", [True, False])
def test_a_body_of_three_limits_is_refused_by_us_and_never_spooled_whole(
    rows: SimpleNamespace, low_limits: int, path: str, status: int, kind: str, *, announced: bool
) -> None:
    pieces = 3 * low_limits // len(PIECE) + 1
    length = {"Content-Length": str(pieces * len(PIECE))} if announced else {}
    answer = AsgiRequest(path, "POST", rows.headers | length, [PIECE] * pieces).run()
    assert (answer.status, answer.json["error"]["type"]) == (status, kind)
    assert answer.answer_headers["request-id"].startswith("req_")
    assert answer.spooled_bytes == low_limits + 1
    assert answer.taken_bytes <= 2 * low_limits + 2 * len(PIECE)


def test_a_body_of_two_limits_is_taken_to_its_end_before_it_is_refused(
    rows: SimpleNamespace, low_limits: int
) -> None:
    pieces = 2 * low_limits // len(PIECE)
    answer = AsgiRequest("/v1/batches", "POST", rows.headers, [PIECE] * pieces).run()
    assert (answer.status, answer.json["error"]["code"]) == (400, "body_too_large")
    assert answer.taken_bytes == pieces * len(PIECE)


def test_compressed_bytes_without_end_are_refused_as_such(rows: SimpleNamespace, low_limits: int) -> None:
    pieces = [gzip_of_nothing()] * (2 * low_limits // len(gzip_of_nothing()))
    headers = rows.headers | {"Content-Encoding": "gzip"}
    answer = AsgiRequest(f"/v1/batches/{submit(rows).id}/retry", "POST", headers, pieces).run()
    assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_encoding")
    assert "far more compressed bytes" in answer.json["error"]["message"]


def gzip_of_nothing() -> bytes:
    """64 KB of an extra field in the header (RFC 1952, 2.3.1.1)."""
    header = b"\x1f\x8b\x08\x04" + bytes(6) + b"\xff\xff" + bytes(0xFFFF)
    return header + zlib.compress(b"", wbits=-15) + bytes(8)


@pytest.mark.parametrize("end", ["whole", "left", "broken"])
def test_no_connection_and_no_file_is_left_after_a_request(watched: WatchedStream, end: str) -> None:
    before = sessions()
    for _ in range(3):
        watched.made = 0
        if end == "broken":
            watched.breaks_at = 2
            with pytest.raises(LookupError):
                AsgiRequest("/stream").run()
        else:
            AsgiRequest("/stream", on_part=lambda _: end == "whole").run()
    wait_until(lambda: sessions() <= before, lambda: f"{sessions() - before} are left")


def sessions() -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return {pid for (pid,) in cursor.fetchall()}
