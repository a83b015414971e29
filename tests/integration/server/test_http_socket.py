"""What only a real connection shows: chunks, 100-continue, disconnects, and errors while the client still sends."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from batches.models import Batch, BatchItem
from batches.payloads import open_store
from tests.support.rows.catalog import make_catalog
from tests.support.rows.item_outcomes import complete
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_until
from tests.support.servers.web import read_reply, web_process

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.web import Web

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/v1/batches"
BODY = b'{"shape":"openai","requests":[' + chat_body() + b"]}"
LIMIT = 33_554_432


@pytest.fixture
def rows(web: Web) -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def head(rows: SimpleNamespace, *lines: str, method: str = "POST", path: str = PATH) -> bytes:
    fields = (f"{method} {path} HTTP/1.1", "Host: localhost", f"x-api-key: {rows.relay_key_value}", *lines)
    return "\r\n".join((*fields, "", "")).encode()


def code_of(body: bytes) -> Any:
    return json.loads(body)["error"]["code"]


def resident(web: Web) -> int:
    processes = [psutil.Process(web.process.pid), *psutil.Process(web.process.pid).children(recursive=True)]
    return max(process.memory_info().rss for process in processes)


def test_a_chunked_upload_is_accepted(web: Web, rows: SimpleNamespace) -> None:
    reply = web.call("POST", PATH, headers=rows.headers, body=iter([BODY[:7], BODY[7:]]))
    assert reply.status == 202
    assert Batch.objects.get().total_items == 1


def test_a_client_that_expects_100_continue_is_told_to(web: Web, rows: SimpleNamespace) -> None:
    with web.connected() as client:
        client.sendall(head(rows, f"Content-Length: {len(BODY)}", "Expect: 100-continue"))
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(BODY)
        assert read_reply(client).status == 202


def test_a_client_that_leaves_in_the_middle_of_its_upload_stores_nothing(
    web: Web, rows: SimpleNamespace
) -> None:
    with web.connected() as client:
        client.sendall(head(rows, f"Content-Length: {len(BODY)}") + BODY[:-1])
        client.shutdown(socket.SHUT_WR)
        reply = read_reply(client)
    assert (reply.status, code_of(reply.body)) == (400, "incomplete_body")
    assert Batch.objects.count() == 0


@pytest.mark.parametrize("rest", [b"ffff\r\n{", b"zz\r\n{}\r\n0\r\n\r\n", b"2\r\n{}"])
def test_a_chunked_upload_that_breaks_off_stores_nothing(
    web: Web, rows: SimpleNamespace, rest: bytes
) -> None:
    with web.connected() as client:
        client.sendall(head(rows, "Transfer-Encoding: chunked") + rest)
        client.shutdown(socket.SHUT_WR)
        reply = read_reply(client)
    assert (reply.status, code_of(reply.body)) == (400, "incomplete_body")
    assert Batch.objects.count() == 0


def test_a_client_that_leaves_after_its_upload_has_a_whole_batch(web: Web, rows: SimpleNamespace) -> None:
    body = b'{"shape":"openai","requests":[' + b",".join([chat_body()] * 500) + b"]}"
    with web.connected() as client:
        client.sendall(head(rows, f"Content-Length: {len(body)}") + body)
    wait_until(Batch.objects.exists, web.log)
    batch = Batch.objects.get()
    assert BatchItem.objects.filter(batch=batch).count() == batch.total_items == 500


@pytest.mark.parametrize("size", [LIMIT + 1, LIMIT * 3 // 2])
def test_a_client_that_sends_too_much_sees_the_refusal_and_not_a_broken_pipe(
    web: Web, rows: SimpleNamespace, size: int
) -> None:
    reply = web.send_raw(head(rows, f"Content-Length: {size}") + bytes(size))
    assert (reply.status, code_of(reply.body)) == (400, "body_too_large")
    assert Batch.objects.count() == 0


def test_a_client_without_a_credential_sees_its_401_though_it_sends_megabytes(web: Web) -> None:
    size = 8_000_000
    reply = web.send_raw(
        f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode() + bytes(size)
    )
    assert (reply.status, code_of(reply.body)) == (401, "missing_credential")


def test_a_chunked_upload_over_the_limit_is_refused(web: Web, rows: SimpleNamespace) -> None:
    piece = bytes(1 << 20)
    reply = web.call("POST", PATH, headers=rows.headers, body=(piece for _ in range(33)))
    assert (reply.status, code_of(reply.body)) == (400, "body_too_large")


def test_refusing_takes_no_memory_and_a_bomb_stops_at_the_limit(web: Web, rows: SimpleNamespace) -> None:
    bomb = zlib.compressobj(wbits=31)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(100)) + bomb.flush()
    headers = rows.headers | {"Content-Encoding": "gzip"}
    web.call("POST", PATH, headers=headers, body=packed)
    before = resident(web)
    for _ in range(3):
        reply = web.call("POST", PATH, headers=headers, body=packed)
        assert (reply.status, code_of(reply.body)) == (400, "body_too_large")
        web.send_raw(head(rows, f"Content-Length: {LIMIT + 1}") + bytes(LIMIT + 1))
    assert resident(web) - before < LIMIT // 2


def test_a_body_of_the_limit_grows_the_process_by_at_most_four_times_its_size(
    tmp_path: Path, transactional_db: None
) -> None:
    rows = make_catalog("http://127.0.0.1:9")
    item = b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * 570 + b'"}]}'
    body = b'{"shape":"openai","requests":[' + b",".join([item] * 50_000) + b"]}"
    with web_process(tmp_path) as web:
        assert web.call("POST", PATH, headers=rows.headers, body=BODY).status == 202
        before = resident(web)
        peaks: list[int] = []
        with web.connected() as client:
            client.sendall(head(rows, f"Content-Length: {len(body)}") + body)
            client.setblocking(False)
            wait_until(lambda: _has_answered(client, peaks, web), web.log)
            client.settimeout(30)
            assert read_reply(client).status == 202
        assert max(peaks) - before < 4 * len(body)
    assert BatchItem.objects.count() == 50_001


def _has_answered(client: socket.socket, peaks: list[int], web: Web) -> bool:
    peaks.append(resident(web))
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def test_results_are_made_as_the_client_takes_them(web: Web, rows: SimpleNamespace) -> None:
    batch = submit(rows, *[chat_body()] * 60)
    answer = b'{"t":"' + b"x" * 1_000_000 + b'"}'
    for idx in range(60):
        complete(batch, idx, answer)
    with web.connected() as client:
        client.sendall(head(rows, method="GET", path=f"{PATH}/{batch.id}/results?include=error_code"))
        client.recv(16, socket.MSG_PEEK)
        # The connection is full long before the end. What is deleted now was not read ahead.
        open_store().discard(batch.id)
        results = read_reply(client).json["results"]
    assert "response" in results[0]
    assert results[59]["error_code"] == "load_result_failed"


def test_streamed_results_come_whole_and_compressed_over_a_socket(web: Web, rows: SimpleNamespace) -> None:
    batch = submit(rows, *[chat_body()] * 200)
    for idx in range(0, 200, 2):
        complete(batch, idx, b'{"idx":%d}' % idx)
    headers = rows.headers | {"Accept-Encoding": "gzip"}
    reply = web.call("GET", f"{PATH}/{batch.id}/results?format=jsonl", headers=headers)
    lines = gzip.decompress(reply.body).splitlines()
    assert reply.headers["transfer-encoding"] == "chunked"
    assert [json.loads(line)["idx"] for line in lines] == list(range(200))
    assert json.loads(lines[198])["response"] == {"idx": 198}


def test_a_head_request_has_no_body_and_the_connection_goes_on(web: Web, rows: SimpleNamespace) -> None:
    batch = submit(rows)
    with web.connected() as client:
        client.sendall(head(rows, method="HEAD", path=f"{PATH}/{batch.id}/results"))
        received = b""
        while b"\r\n\r\n" not in received:
            received += client.recv(4096)
        assert received.startswith(b"HTTP/1.1 200 OK")
        assert received.endswith(b"\r\n\r\n")


def test_the_log_of_the_process_holds_the_id_of_the_answer_and_no_credential(
    web: Web, rows: SimpleNamespace
) -> None:
    reply = web.call("GET", f"{PATH}?dialect=relay&cursor=none", headers=rows.headers)
    assert reply.status == 400
    lines = [line for line in web.log().splitlines() if reply.headers["request-id"] in line]
    assert [json.loads(line)["logger"] for line in lines] == ["relaybatch.access"]
    assert rows.relay_key_value not in web.log()
    assert "cursor" not in lines[0]
    served = json.loads(lines[0])
    assert (served["event"], served["method"], served["path"], served["status"]) == (
        "request served",
        "GET",
        PATH,
        400,
    )


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /v1/batches/" + b"a" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /v1/batches HTTP/1.1\r\nHost: x\r\nx-api-key: " + b"secret" * 2000 + b"\r\n\r\n", 431),
        (b"GET /v1/batches HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\0secret\r\n\r\n", 400),
        (b"POST /v1/batches HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /v1/batches HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", 400),
        (b"POST /v1/batches HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\n\r\n", 417),
        (b"GET /v1/batches HTTP/9.9\r\nHost: x\r\n\r\n", 400),
    ],
)
def test_what_the_server_itself_refuses_is_json_that_repeats_nothing(
    web: Web, sent: bytes, status: int
) -> None:
    reply = web.send_raw(sent)
    assert (reply.status, reply.headers["content-type"]) == (status, "application/json")
    assert (reply.json["type"], reply.json["error"]["code"]) == ("error", "bad_request")
    assert reply.headers["request-id"] == reply.headers["x-request-id"] == reply.json["request_id"]
    assert reply.headers["request-id"] in web.log()
    assert b"secret" not in reply.body + web.log().encode()


@pytest.mark.parametrize("depth", [*range(930, 1000, 2), 5000])
def test_no_depth_is_an_error_of_ours(web: Web, rows: SimpleNamespace, depth: int) -> None:
    body = b'{"shape":"openai","requests":[{"model":"echo-1","x":' + b"[" * depth + b"]" * depth + b"}]}"
    reply = web.call("POST", "/v1/batches", headers=rows.headers, body=body)
    assert reply.status == (202 if depth <= 997 else 400)


@pytest.mark.parametrize("path", ["/healthz", "/openapi.json", "/v1/batches", "/v1/batches?dialect=openai"])
def test_the_answer_to_head_is_that_of_get_without_its_body(
    rows: SimpleNamespace, web: Web, path: str
) -> None:
    with web.connected() as client:
        client.sendall(head(rows, "Content-Length: 0", method="HEAD", path=path))
        client.sendall(head(rows, "Content-Length: 0", "Connection: close", method="GET", path="/healthz"))
        received = b"".join(iter(lambda: client.recv(65_536), b""))
    first, _, rest = received.partition(b"\r\n\r\n")
    got = web.call("GET", path, headers={"x-api-key": rows.relay_key_value})
    assert f"content-length: {len(got.body)}".encode() in first.lower()
    assert rest.startswith(b"HTTP/1.1 200 ")
    assert "no-body response" not in web.log()


@pytest.mark.parametrize(("method", "ending"), [("POST", "/cancel"), ("GET", "")])
def test_a_body_that_a_route_does_not_take_leaves_the_connection_to_the_next_request(
    rows: SimpleNamespace, web: Web, method: str, ending: str
) -> None:
    batch = submit(rows)
    with web.connected() as client:
        first = head(rows, "Content-Length: 3000000", method=method, path=f"{PATH}/{batch.id}{ending}")
        client.sendall(first + b" " * 3_000_000)
        assert read_reply(client).status == 200
        client.sendall(head(rows, "Content-Length: 0", "Connection: close", method="GET", path="/healthz"))
        assert read_reply(client).status == 200
