"""Hostile request bodies: submissions and item filters of a retry."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from batches.dialects.body_parser import parse_body
from batches.dialects.detection import detect_dialect
from batches.dialects.request_context import RequestContext
from batches.submission.failed_item_filter import parse_item_filter
from relaybatch.http.errors import ApiError
from tests.support.hostile.hostile_json import EMOJI, SIZE, Row, deep, list_of, members, string, two_models

if TYPE_CHECKING:
    from batches.models import Batch


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


def created(body: bytes) -> str:
    context = RequestContext(parameters=None, headers={}, origin=lambda: "http://h")  # type: ignore[arg-type]
    try:
        wire = parse_body(memoryview(body))
        submission = detect_dialect(wire).parse_submission(wire, context)
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
