"""Hostile bodies and answers, for every decoder of outside bytes. See tests/support/hostile/decoder_memory.py."""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import time
import uuid
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from batches.dialects.body_parser import parse_body
from batches.dialects.detection import detect_dialect
from batches.dialects.request_context import RequestContext
from batches.dialects.results.json_lines import coalesce_chunks
from batches.dialects.results.result_lines import render_result_line
from batches.results import results
from batches.submission.failed_item_filter import parse_item_filter
from relaybatch.http.errors import ApiError
from routing.adapters import ADAPTERS
from routing.transport.abort_handle import AbortHandle
from routing.transport.connection_attempt import ConnectionAttempt
from routing.transport.http_request import UpstreamRequest, post
from routing.upstream.failures import CallFailed
from routing.upstream.request_model import requested_model
from routing.upstream.response_usage import UnusableResponse, usage_of_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from batches.models import Batch

SIZE = 6_000_000
EMOJI = "😀".encode()


@dataclass(frozen=True, slots=True)
class Row:
    """`size_bytes`: of what the bytes stand for, where that is not their own number (compressed ones)."""

    name: str
    decode: Callable[[bytes], str]
    outcome: str
    body: Callable[[], bytes]
    size_bytes: int | None = None


def list_of(element: bytes, size: int = SIZE) -> bytes:
    return b"[" + b",".join([element] * (size // (len(element) + 1))) + b"]"


def members(size: int = SIZE, *, value: bytes = b"1") -> bytes:
    """Of an object, without its braces; each of another name."""
    return b",".join(b'"%x":%b' % (number, value) for number in range(size // (9 + len(value))))


def string(piece: bytes = b"x", *, last: bytes = EMOJI, size: int = SIZE) -> bytes:
    """With one character at its end that makes each of a Python string take four bytes."""
    return b'"' + piece * (size // len(piece)) + last + b'"'


def deep(size: int = SIZE) -> bytes:
    return b"[" * (size // 2) + b"]" * (size // 2)


def create_rows() -> list[Row]:
    relay = b'{"shape":"openai","requests":[{"model":"m"}],%b}'
    items = b'{"shape":"openai","requests":%b}'
    chat = b'{"requests":[{"custom_id":%b,"params":%b}]}'
    rows = [
        (
            "a million pairs of metadata",
            "metadata",
            lambda: relay % (b'"metadata":{%b}' % members(value=b'""')),
        ),
        ("metadata a list of objects", "metadata", lambda: relay % (b'"metadata":' + list_of(b"{}"))),
        ("metadata of one long value", "metadata", lambda: relay % (b'"metadata":{"a":%b}' % string())),
        ("a long on_rate_limit", "on_rate_limit", lambda: relay % (b'"on_rate_limit":' + string())),
        ("max_attempts of many digits", "max_attempts", lambda: relay % (b'"max_attempts":' + b"1" * SIZE)),
        ("max_attempts 1e…", "max_attempts", lambda: relay % (b'"max_attempts":1e' + b"9" * SIZE)),
        ("a long shape", "shape", lambda: b'{"requests":[{"model":"m"}],"shape":%b}' % string()),
        ("members that nobody reads", "accepted", lambda: relay % members()),
        ("a long key with escapes", "accepted", lambda: relay % (string(b"x\\n") + b":1")),
        ("deep members", "invalid_json", lambda: relay % (b'"a":' + deep())),
        ("an item with a long model", "accepted", lambda: items % (b'[{"model":%b}]' % string())),
        (
            "an item with a list as model",
            "requests[0].model",
            lambda: items % (b'[{"model":%b}]' % list_of(b"{}")),
        ),
        (
            "an item with a list as stream",
            "requests[0].stream",
            lambda: items % (b'[{"model":"m","stream":%b}]' % list_of(b"{}")),
        ),
        (
            "an item of two models and many members",
            "requests[0].model",
            lambda: items % two_models(members()),
        ),
        (
            "an item of two models and a long key",
            "requests[0].model",
            lambda: items % two_models(string() + b":1"),
        ),
        (
            "an item of nested models",
            "accepted",
            lambda: items % b'[{"a":%b,"model":"m"}]' % list_of(b'{"model":1}'),
        ),
        (
            "an item of brackets",
            "accepted",
            lambda: items % (b'[{"a":"model","b":%b,"model":"m"}]' % list_of(b"[]")),
        ),
        ("an item of escapes", "accepted", lambda: items % (b'[{"a":%b,"model":"m"}]' % string(b'\\"'))),
        ("50,000 smallest items", "accepted", lambda: items % list_of(b'{"model":"m"}', 700_000)),
        ("50,000 empty items", "requests[0].model", lambda: items % list_of(b"{}", 150_000)),
        ("empty items over the limit", "requests", lambda: items % list_of(b"{}")),
        ("numbers as items", "requests[0]", lambda: items % list_of(b"1")),
        ("numbers as items, few", "requests[0]", lambda: items % list_of(b"1", 120_000)),
        ("a long custom_id", "requests[0].custom_id", lambda: chat % (string(), b"{}")),
        ("a list as custom_id", "requests[0].custom_id", lambda: chat % (list_of(b"{}"), b"{}")),
        ("a list as params", "requests[0].params", lambda: chat % (b'"a"', list_of(b"{}"))),
        ("large params", "requests[0].params", lambda: chat % (b'"a"', b'{"a":%b}' % list_of(b"{}"))),
        ("empty items for chat", "requests", lambda: b'{"requests":%b}' % list_of(b"{}")),
        (
            "no UTF-8 behind many strings",
            "invalid_json",
            lambda: relay % (b'"a":[%b,"\xff"]' % list_of(b'""')),
        ),
        ("NaN behind a long string", "requests[0]", lambda: items % (b'[{"a":%b,"b":NaN}]' % string())),
    ]
    return [Row(name, created, outcome, body) for name, outcome, body in rows]


def two_models(rest: bytes) -> bytes:
    return b'[{"model":"m","Model":"n",' + rest + b"}]"


def created(body: bytes) -> str:
    asked = RequestContext(parameters=None, headers={}, origin=lambda: "http://h")  # type: ignore[arg-type]
    try:
        wire = parse_body(memoryview(body))
        submission = detect_dialect(wire).parse_submission(wire, asked)
    except ApiError as error:
        return error.param or str(error.code)
    return "accepted" if submission.requests else ""


def retry_rows() -> list[Row]:
    def numbered(form: bytes) -> bytes:
        return b"[" + b",".join(form % number for number in range(300, 900_000)) + b"]"

    rows = [
        ("members that nobody reads", "None None None", lambda: b"{%b}" % members(SIZE)),
        ("numbers", "idx", lambda: b'{"idx":%b}' % numbered(b"%d")),
        ("the same number", "idx", lambda: b'{"idx":%b}' % list_of(b"1")),
        ("a number of many digits", "idx", lambda: b'{"idx":%b}' % (b"1" * SIZE)),
        ("codes", "error_code", lambda: b'{"error_code":%b}' % numbered(b'"%x"')),
        ("a long code", "0 None None", lambda: b'{"error_code":%b}' % string(size=SIZE)),
        ("ids", "custom_id", lambda: b'{"custom_id":%b}' % numbered(b'"%x"')),
        ("50,000 ids", "None None 50000", lambda: b'{"custom_id":[%b]}' % wide_ids(b",", 50_000, 150)),
        ("ids of 512", "None None 15000", lambda: b'{"custom_id":[%b]}' % wide_ids(b",", 15_000, 504)),
        ("objects as ids", "custom_id", lambda: b'{"custom_id":%b}' % list_of(b"{}")),
        ("deep", "invalid_json", lambda: b'{"custom_id":%b}' % deep(SIZE)),
    ]
    return [Row(name, selected, outcome, body) for name, outcome, body in rows]


def wide_ids(separator: bytes, number: int, characters: int) -> bytes:
    return separator.join(b'"%06d%b%b"' % (idx, b"x" * (characters - 7), EMOJI) for idx in range(number))


def selected(body: bytes) -> str:
    try:
        selection = parse_item_filter(memoryview(body), cast("Batch", SimpleNamespace(total_items=1)))
    except ApiError as error:
        return error.param or str(error.code)
    parts = (selection.error_code, selection.idx, selection.custom_id)
    return " ".join("None" if part is None else str(len(part)) for part in parts)


def item_rows() -> list[Row]:
    rows = [
        ("a long model", "sent", lambda: b'{"model":%b}' % string()),
        ("a list as model", "model must be a non-empty string", lambda: b'{"model":%b}' % list_of(b"{}")),
        ("a list as stream", "stream must be false", lambda: b'{"model":"m","stream":%b}' % list_of(b"{}")),
        ("two models and many members", "model is given twice", lambda: two_models(members())[1:-1]),
        ("two models and a long key", "model is given twice", lambda: two_models(string() + b":1")[1:-1]),
        ("nested models", "sent", lambda: b'{"a":%b,"model":"m"}' % list_of(b'{"model":1}')),
        (
            "the same model twice, long",
            "model is given twice",
            lambda: b'{"model":%b,"model":"m"}' % string(),
        ),
        ("brackets before the model", "sent", lambda: b'{"a":%b,"b":"model","model":"m"}' % list_of(b"[]")),
        ("a long string before the model", "sent", lambda: b'{"a":%b,"model":"m"}' % string()),
        ("deep", "the body is not JSON, or nested too deep", lambda: b'{"a":%b}' % deep()),
        ("no object", "the body is not a JSON object", lambda: list_of(b"{}")),
    ]
    return [Row(name, renamed, outcome, body) for name, outcome, body in rows]


def renamed(body: bytes) -> str:
    """What becomes of an item on its way to an upstream that calls the model by another name."""
    try:
        model = requested_model(body)
    except CallFailed as failed:
        return failed.failure.message
    sent = ADAPTERS["openai"].body(body, model=model, upstream_name="other")
    return "sent" if b'"other"' in (sent[:100] + sent[-100:]) else ""


def answer_rows() -> list[Row]:
    answer = b'{"choices":[],%b}'
    usage = b'{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":%b}}'
    rows = [
        ("usage a list of empty objects", "unknown", lambda: answer % (b'"usage":' + list_of(b"{}"))),
        ("usage of many members", "unknown", lambda: usage % (b"1," + members())),
        ("a count of many digits", "unknown", lambda: usage % (b"1" * SIZE)),
        ("a count 1e…", "unknown", lambda: usage % (b"1e" + b"9" * (SIZE // 2) + b"," + members(SIZE // 2))),
        ("a count that is a string", "unknown", lambda: usage % string()),
        ("a deep count", "nested too deep", lambda: usage % deep()),
        ("many members", "unknown", lambda: answer % members()),
        ("many members behind the usage", "1 2", lambda: (usage % b"2")[:-1] + b"," + members() + b"}"),
        ("a long key with escapes", "unknown", lambda: answer % (string(b"x\\n") + b":1")),
        ("many numbers", "unknown", lambda: b'{"choices":%b}' % list_of(b"1e9")),
        ("a long string with an emoji", "unknown", lambda: b'{"choices":%b}' % string()),
        ("lone surrogates", "unknown", lambda: b'{"choices":%b}' % string(b"\\ud800", last=b"")),
        ("other lone surrogates", "unknown", lambda: b'{"choices":%b}' % string(b"\\uDfFf\\udc00", last=b"")),
        (
            "escapes and a lone surrogate",
            "unknown",
            lambda: b'{"choices":%b}' % string(b"\\n", last=b"\\uD800"),
        ),
        (
            "pairs and a lone surrogate",
            "unknown",
            lambda: b'{"choices":%b}' % string(b"\\ud83d\\ude00", last=b"\\udc00"),
        ),
        ("a long error", "an error in place of an answer", lambda: b'{"error":%b}' % string(last=b"\\ud800")),
        ("an error of a list", "an error in place of an answer", lambda: b'{"error":%b}' % list_of(b"{}")),
        ("a list", "not a JSON object", lambda: list_of(b"{}")),
        ("blanks", "empty", lambda: b" " * SIZE),
        ("blanks around it", "unknown", lambda: b" " * (SIZE // 2) + answer % b'"a":1' + b" " * (SIZE // 2)),
        ("no UTF-8 at its end", "not UTF-8", lambda: b'{"choices":%b}' % string(last=EMOJI + b"\xff")),
    ]
    return [Row(name, tokens, outcome, body) for name, outcome, body in rows]


def tokens(body: bytes) -> str:
    try:
        found = usage_of_response(body, ADAPTERS["openai"]).tokens
    except UnusableResponse as unusable:
        return unusable.reason
    return f"{found.input} {found.output}" if found else "unknown"


def exchange_rows() -> list[Row]:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    error = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%b"
    whole = b'{"choices":%b}' % string(b"\\ud800", last=b"", size=600)
    large = b'{"choices":%b}' % string(last=b"\\ud800")
    sized = b"Content-Length: %d\r\n\r\n%b"
    unreadable = "200 its headers cannot be read"
    packed = gzip.compress(large)
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    rows = [
        ("with its length", "200 unknown", lambda: head + sized % (len(large), large), None),
        ("until the connection ends", "200 unknown", lambda: head + b"\r\n" + large, None),
        (
            "in chunks",
            "200 unknown",
            lambda: (
                head
                + b"Transfer-Encoding: chunked\r\n\r\n"
                + chunk * (SIZE // 4096)
                + b"%x\r\n%b\r\n0\r\n\r\n" % (len(whole), whole)
            ),
            None,
        ),
        (
            "an endless chunk size",
            "200 cut short",
            lambda: head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * SIZE,
            None,
        ),
        (
            "compressed",
            "200 unknown",
            lambda: head + b"Content-Encoding: gzip\r\n" + sized % (len(packed), packed),
            len(large),
        ),
        ("headers", "200 unknown", lambda: head + headers(2_500) + sized % (len(whole), whole), None),
        ("large headers", unreadable, lambda: head + headers(60_000) + sized % (len(whole), whole), None),
        ("a large error", "400 4096", lambda: error % (SIZE, string(size=SIZE - 6)), None),
        ("an endless header", unreadable, lambda: head + b"a: " + b"b" * SIZE, None),
    ]
    return [Row(name, exchanged, outcome, body, size) for name, outcome, body, size in rows]


def headers(bytes_each: int) -> bytes:
    return b"".join(b"h%d: %b\r\n" % (number, b"x" * bytes_each) for number in range(90))


def exchanged(answer: bytes) -> str:
    """What an attempt reads from an upstream that says so; the upstream is another process."""
    listener = socket.create_server(("127.0.0.1", 0))
    if not os.fork():
        _serve(listener, answer)
    request = UpstreamRequest(f"http://127.0.0.1:{listener.getsockname()[1]}/", (), b"{}", "key")
    del answer
    trip = ConnectionAttempt(abort_handle=AbortHandle(), deadline=time.monotonic() + 60, owner="somebody")
    reply = post(request, attempt=trip, max_bytes=4 * SIZE, trust_env_proxies=False)
    if reply.read_error or reply.status != 200:
        return f"{reply.status} {reply.read_error or len(reply.body)}"
    return f"{reply.status} {usage_of_response(reply.body, ADAPTERS['openai']).tokens or 'unknown'}"


def _serve(listener: socket.socket, answer: bytes) -> None:
    connection, _ = listener.accept()
    asked = b""
    while not asked.endswith(b"{}"):
        asked += connection.recv(65_536)
    with contextlib.suppress(OSError):  # whoever asked may have read enough
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
    os._exit(0)


def result_rows() -> list[Row]:
    rows = [
        ("ASCII", lambda: string(last=b"")),
        ("every other character beyond ASCII", lambda: string("é".encode() + b"a", last=b"")),
        ("emoji", lambda: string(EMOJI, last=b"")),
        ("escapes", lambda: string(b'\\\\\\"\\n', last=b"")),
        ("line breaks", lambda: b"[" + b"\r\n" * (SIZE // 2) + b"]"),
    ]
    return [Row(name, shown, "one line", body) for name, body in rows]


def shown(response: bytes) -> str:
    """Of a stored answer, its line as it goes out."""
    row = results.ResultRow(uuid.uuid4(), 0, "a", "completed", 1, len(response), "", "", None, None)
    parts = coalesce_chunks(render_result_line(results.Result(row, response, None), nested=False))
    breaks = sum(part.count(b"\n") + part.count(b"\r") for part in parts if part.isascii())
    return "one line" if breaks == 1 else f"{breaks} breaks"


ROWS: dict[str, Callable[[], list[Row]]] = {
    "create": create_rows,
    "retry": retry_rows,
    "item": item_rows,
    "answer": answer_rows,
    "exchange": exchange_rows,
    "result": result_rows,
}
