"""Hostile bytes on the way to an upstream and back: items, responses, whole HTTP exchanges, stored responses."""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import time
import uuid

from batches.dialects.results.json_lines import coalesce_chunks
from batches.dialects.results.result_lines import render_result_line
from batches.results.result_rows import ResultRow
from batches.results.results import Result
from routing.adapters import ADAPTERS
from routing.calls.failures import CallFailed
from routing.transport.abort_handle import AbortHandle
from routing.transport.connection_attempt import ConnectionAttempt
from routing.transport.http_request import UpstreamRequest, post
from routing.upstream.request_model import requested_model
from routing.upstream.response_usage import UnusableResponse, usage_of_response
from tests.support.hostile.hostile_json import EMOJI, SIZE, Row, deep, list_of, members, string, two_models


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
    """Replace the model's name in an item, for an upstream that calls it by another name."""
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
    """Send a request to an upstream, in another process, that responds with these bytes."""
    listener = socket.create_server(("127.0.0.1", 0))
    if not os.fork():
        _serve(listener, answer)
    request = UpstreamRequest(f"http://127.0.0.1:{listener.getsockname()[1]}/", (), b"{}", "key")
    del answer
    attempt = ConnectionAttempt(abort_handle=AbortHandle(), deadline=time.monotonic() + 60, owner="somebody")
    reply = post(request, attempt=attempt, max_bytes=4 * SIZE, trust_env_proxies=False)
    if reply.read_error or reply.status != 200:
        return f"{reply.status} {reply.read_error or len(reply.body)}"
    return f"{reply.status} {usage_of_response(reply.body, ADAPTERS['openai']).tokens or 'unknown'}"


def _serve(listener: socket.socket, answer: bytes) -> None:
    connection, _ = listener.accept()
    received = b""
    while not received.endswith(b"{}"):
        received += connection.recv(65_536)
    with contextlib.suppress(OSError):  # the client may have read enough
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
    return [Row(name, rendered, "one line", body) for name, body in rows]


def rendered(response: bytes) -> str:
    """Render a stored response as a line of the results."""
    row = ResultRow(uuid.uuid4(), 0, "a", "completed", 1, len(response), "", "", None, None, "")
    parts = coalesce_chunks(render_result_line(Result(row, response, None), nested=False))
    breaks = sum(part.count(b"\n") + part.count(b"\r") for part in parts if part.isascii())
    return "one line" if breaks == 1 else f"{breaks} breaks"
