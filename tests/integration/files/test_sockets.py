"""Uploads and downloads over real connections: chunks, 100-continue, disconnects, limits, broken contents, memory."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import socket
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from django.db import connection

from batches.files.content import PIECE_BYTES
from batches.models import File, PayloadChunk
from batches.payloads import open_store
from bench.measurements import Memory
from tests.support.calls.file_calls import BOUNDARY, LINES, content_of, file_form, form, part, stored_folders
from tests.support.rows.catalog import make_catalog
from tests.support.servers.deployment import wait_until
from tests.support.servers.web import read_reply, web_process

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.web import Reply, Web

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1 << 20
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
IN_USE = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend' AND (state <> 'idle' OR xact_start IS NOT NULL)
"""


@pytest.fixture
def rows(web: Web) -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def _nothing_is_left_of_what_was_refused(transactional_db: None) -> Iterator[None]:
    before = stored_names()
    yield
    wait_until(
        lambda: stored_names() - before == {file.public_id for file in File.objects.all()},
        lambda: str(stored_names() - before),
    )


def stored_names() -> set[str]:
    """Of files whose content is in either store, whole or in parts."""
    chunks = PayloadChunk.objects.filter(name__startswith="file-").values_list("name", flat=True)
    return stored_folders() | {name.partition("/")[0] for name in chunks}


def head(rows: SimpleNamespace, *lines: str) -> bytes:
    kind = f"Content-Type: {FORM['Content-Type']}"
    start = ("POST /v1/files HTTP/1.1", "Host: localhost", f"x-api-key: {rows.relay_key_value}", kind)
    return "\r\n".join((*start, *lines, "", "")).encode()


def code_of(reply: Reply) -> tuple[int, Any]:
    return reply.status, json.loads(reply.body)["error"]["code"]


def send(web: Web, rows: SimpleNamespace, body: bytes | Iterable[bytes]) -> Reply:
    return web.call("POST", "/v1/files", headers=rows.headers | FORM, body=body)


def in_use() -> int:
    with connection.cursor() as cursor:
        cursor.execute(IN_USE)
        return int(cursor.fetchone()[0])


def test_a_chunked_upload_is_accepted(web: Web, rows: SimpleNamespace) -> None:
    body = file_form()
    assert send(web, rows, iter([body[:9], body[9:150], body[150:]])).status == 200
    assert content_of(File.objects.get()) == LINES


def test_a_client_that_expects_100_continue_is_told_to(web: Web, rows: SimpleNamespace) -> None:
    body = file_form()
    with web.connected() as client:
        client.sendall(head(rows, f"Content-Length: {len(body)}", "Expect: 100-continue"))
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert read_reply(client).status == 200


@pytest.mark.parametrize("sent", [0, 60, 3 * MIB])
def test_a_client_that_leaves_in_the_middle_stores_nothing(
    store: Web, rows: SimpleNamespace, sent: int
) -> None:
    body = file_form(bytes(4 * MIB))
    with store.connected() as client:
        client.sendall(head(rows, f"Content-Length: {len(body)}") + body[:sent])
        client.shutdown(socket.SHUT_WR)
        assert code_of(read_reply(client)) == (400, "incomplete_body")
    assert not File.objects.exists()


def test_a_client_that_resets_its_connection_in_the_middle_stores_nothing(
    store: Web, rows: SimpleNamespace
) -> None:
    body, before = file_form(bytes(4 * MIB)), stored_names()
    with store.connected() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.sendall(head(rows, f"Content-Length: {len(body)}") + body[: 3 * MIB])
        wait_until(lambda: stored_names() > before, store.log)
    wait_until(lambda: stored_names() == before, store.log)
    assert not File.objects.exists()


@pytest.mark.parametrize("rest", [b"ffff\r\n--b0", b"zz\r\n{}\r\n0\r\n\r\n"])
def test_a_chunked_upload_that_breaks_off_stores_nothing(
    web: Web, rows: SimpleNamespace, rest: bytes
) -> None:
    with web.connected() as client:
        client.sendall(head(rows, "Transfer-Encoding: chunked") + rest)
        client.shutdown(socket.SHUT_WR)
        assert code_of(read_reply(client)) == (400, "incomplete_body")


def test_a_slow_upload_holds_no_connection_to_the_database(store: Web, rows: SimpleNamespace) -> None:
    body, before = file_form(bytes(4 * MIB)), stored_names()
    with store.connected() as client:
        client.sendall(head(rows, f"Content-Length: {len(body)}") + body[: 3 * MIB])
        wait_until(lambda: stored_names() > before, store.log)
        # An idle connection that nobody holds is closed after a second.
        wait_until(lambda: sessions_of_web() == 0, lambda: str(sessions_of_web()))
        client.sendall(body[3 * MIB :])
        assert read_reply(client).status == 200
    assert File.objects.get().size_bytes == 4 * MIB


def sessions_of_web() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("size", [2 * MIB + 1, 4 * MIB])
def test_a_client_that_sends_too_much_sees_the_413_and_not_a_broken_pipe(
    tmp_path: Path, rows: SimpleNamespace, announced: bool, size: int
) -> None:
    body = file_form(bytes(size))
    with web_process(tmp_path, RELAY_MAX_FILE_BYTES=str(2 * MIB)) as web:
        sent = body if announced else (body[at : at + MIB] for at in range(0, len(body), MIB))
        reply = send(web, rows, sent)
    assert code_of(reply) == (413, "body_too_large")
    assert reply.headers["x-should-retry"] == "false"
    assert not File.objects.exists()


def test_an_upload_that_cannot_fit_is_refused_before_it_is_sent(web: Web, rows: SimpleNamespace) -> None:
    with web.connected() as client:
        client.sendall(head(rows, f"Content-Length: {202 * MIB}"))
        client.shutdown(socket.SHUT_WR)
        assert code_of(read_reply(client)) == (413, "body_too_large")


def test_a_download_that_breaks_in_the_middle_is_never_taken_for_whole(
    web: Web, rows: SimpleNamespace
) -> None:
    assert send(web, rows, file_form(bytes(40 * MIB))).status == 200
    file = File.objects.get()
    for accepted in ("identity", "gzip"):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)) as client:
            path = f"/v1/files/{file.public_id}/content"
            client.request("GET", path, headers=rows.headers | {"Accept-Encoding": accepted})
            response = client.getresponse()
            assert response.status == 200
            response.read(10)
            open_store().discard_file(file.id)
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                response.read()
        with open_store().open_file_writer(file.id) as writer:
            # Compressed, 40 MiB of zeros would have been sent by now.
            writer.write(os.urandom(40 * MIB))
            writer.commit()
    assert "PayloadReadError" in web.log()


def test_a_slow_download_holds_no_connection_to_the_database(store: Web, rows: SimpleNamespace) -> None:
    assert send(store, rows, file_form(bytes(40 * MIB))).status == 200
    file = File.objects.get()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", store.port, timeout=30)) as client:
        client.request("GET", f"/v1/files/{file.public_id}/content", headers=rows.headers)
        response = client.getresponse()
        read = len(response.read(PIECE_BYTES))
        wait_until(lambda: sessions_of_web() == 0, lambda: str(sessions_of_web()))
        while piece := response.read(MIB):
            read += len(piece)
    assert read == 40 * MIB


@pytest.mark.endurance
@pytest.mark.parametrize("direction", ["up", "down"])
def test_200_mib_go_up_and_down_with_flat_memory(store: Web, rows: SimpleNamespace, direction: str) -> None:
    piece = bytes(range(256)) * 4096
    opening, closing = form(part("purpose", b"batch"), part("file", b"|", filename="f")).split(b"|")
    memory = Memory(psutil.Process(store.process.pid).children()[0].pid)
    memory.begin()
    headers = rows.headers | FORM | {"Content-Length": str(len(opening) + 200 * MIB + len(closing))}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", store.port, timeout=120)) as client:
        client.request("POST", "/v1/files", body=iter([opening, *[piece] * 200, closing]), headers=headers)
        created = json.loads(client.getresponse().read())
        if direction == "down":
            memory.begin()
            digest = hashlib.sha256()
            client.request("GET", f"/v1/files/{created['id']}/content", headers=rows.headers)
            response = client.getresponse()
            while received := response.read(MIB):
                digest.update(received)
            assert digest.digest() == hashlib.sha256(piece * 200).digest()
    assert created["bytes"] == 200 * MIB
    growth = memory.growth_bytes()
    if growth is None:
        pytest.skip("the system does not report a process's peak")
    assert growth <= 16 * MIB
