"""Result lines of the collections with `custom_id`: one form for two kinds of reader."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from batches.dialects.result_lines import result_line
from batches.dialects.upstream_errors import MESSAGE_CHARACTERS
from batches.results import Result, Row

ITEM_ID = uuid.UUID("0192d1e5-7a3b-7c4d-8e5f-0123456789ab")


def result(state: str = "discarded", response: bytes | None = None, **fields: Any) -> Result:
    known: dict[str, Any] = {
        "item_id": ITEM_ID,
        "idx": 0,
        "custom_id": "a",
        "state": state,
        "claim_no": 1,
        "response_length": None,
        "error_code": "",
        "error": "",
        "upstream_status": None,
        "upstream_error": None,
    }
    return Result(Row(**known | fields), response, None)


def upstream_said(body: bytes, status: int = 400) -> Result:
    return result(
        error_code="upstream_status",
        error=f"batch item: upstream status {status}",
        upstream_status=status,
        upstream_error=body,
    )


def shown(found: Result, *, nested: bool = True) -> dict[str, Any]:
    line = b"".join(result_line(found, nested=nested))
    assert line.endswith(b"\n")
    assert line.isascii()
    assert len(line.splitlines()) == 1
    value: dict[str, Any] = json.loads(line)
    assert list(value) == ["custom_id", "result"]
    return value


def error_of(found: Result) -> dict[str, Any]:
    error: dict[str, Any] = shown(found)["result"]["error"]
    return error


def test_a_success_holds_the_answer_token_for_token() -> None:
    answer = (
        '{\r\n "n":1.0, "big":1180591620717411303424,\n"t":"\u2028\u0085😀\\u0000\\ud800", "n":1e3}'.encode()
    )
    line = b"".join(result_line(result("completed", answer), nested=True))
    assert line == (
        b'{"custom_id":"a","result":{"type":"succeeded","message":'
        rb'{   "n":1.0, "big":1180591620717411303424, "t":"\u2028\u0085\ud83d\ude00\u0000\ud800", "n":1e3}'
        b"}}\n"
    )


def test_an_odd_custom_id_is_escaped() -> None:
    assert shown(result("expired", custom_id="é\n\u2028😀"))["custom_id"] == "é\n\u2028😀"


@pytest.mark.parametrize(("state", "kind"), [("cancelled", "canceled"), ("expired", "expired")])
def test_what_did_not_run_says_so_and_no_more(state: str, kind: str) -> None:
    assert shown(result(state, error_code=state))["result"] == {"type": kind}


def test_an_error_serves_readers_of_both_forms() -> None:
    found = result(error_code="timeout", error="timed out after 300 s")
    inner = {"type": "timeout_error", "message": "timed out after 300 s"}
    rest = {"message": "timed out after 300 s", "error": inner, "request_id": str(ITEM_ID)}
    assert shown(found, nested=True)["result"] == {"type": "errored", "error": {"type": "error", **rest}}
    assert shown(found, nested=False)["result"] == {
        "type": "errored",
        "error": {"type": "timeout_error", **rest},
    }


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("upstream_unreachable", "api_error"),
        ("upstream_unreadable", "api_error"),
        ("no_healthy_keys", "api_error"),
        ("timeout", "timeout_error"),
        ("cross_shape", "invalid_request_error"),
        ("model_not_found", "not_found_error"),
        ("model_not_allowed", "permission_error"),
        ("model_disabled", "permission_error"),
        ("no_binding", "api_error"),
        ("no_keys", "api_error"),
        ("rate_limited", "rate_limit_error"),
        ("usage_limit_exceeded", "billing_error"),
        ("credential_disabled", "authentication_error"),
        ("credential_revoked", "authentication_error"),
        ("credential_expired", "authentication_error"),
        ("credential_rotated", "authentication_error"),
        ("credential_deleted", "authentication_error"),
        ("policy_deleted", "permission_error"),
        ("policy_disabled", "permission_error"),
        ("project_disabled", "permission_error"),
        ("principal_disabled", "permission_error"),
        ("load_input_failed", "api_error"),
        ("store_result_failed", "api_error"),
        ("worker_lost", "api_error"),
        ("invalid_item", "invalid_request_error"),
    ],
)
def test_each_failure_has_its_type(code: str, kind: str) -> None:
    found = result(error_code=code, error="a sentence", upstream_error=b'{"error":{"message":"not this"}}')
    assert error_of(found)["error"] == {"type": kind, "message": "a sentence"}


def test_a_lost_answer_is_an_error() -> None:
    error = error_of(result("completed", response_length=7))
    assert error["error"]["type"] == "api_error"
    assert "load result" in error["message"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "invalid_request_error"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (302, "api_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_upstream_without_a_known_type_is_judged_by_its_status(status: int, kind: str) -> None:
    error = error_of(upstream_said(b"<html>Bad</html>", status))
    assert error["error"] == {"type": kind, "message": f"batch item: upstream status {status}"}


@pytest.mark.parametrize(
    "kind",
    [
        *("invalid_request_error", "authentication_error", "billing_error", "permission_error"),
        *("not_found_error", "rate_limit_error", "timeout_error", "api_error", "overloaded_error"),
    ],
)
def test_an_upstreams_own_type_is_kept_when_the_sdks_know_it(kind: str) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "no"}, "request_id": "req_011"}
    error = error_of(upstream_said(json.dumps(body).encode(), 418))
    assert error == {
        "type": "error",
        "message": "no",
        "error": {"type": kind, "message": "no"},
        "request_id": "req_011",
    }


def test_an_upstreams_own_type_that_no_sdk_knows_is_not_kept() -> None:
    body = b'{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":null}}'
    assert error_of(upstream_said(body, 429))["error"] == {
        "type": "rate_limit_error",
        "message": "You exceeded your quota",
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":"plain words"}', "plain words"),
        (b'{"message":"outside"}', "outside"),
        (b'{"detail":"of another kind"}', "of another kind"),
        (
            b'{"detail":[{"loc":["body"],"msg":"field required"},{"msg":"too long"}]}',
            "field required; too long",
        ),
        (b"model is overloaded, slow down\nsecond line", "model is overloaded, slow down"),
        (rb'{"error":{"message":"half \ud800 and \u0000"}}', "half ? and \0"),
        ('{"error":{"message":"\u2028\u0085é😀"}}'.encode(), "\u2028\u0085é😀"),
        (b'{"error":{"message":"cut in the mid', "cut in the mid"),
        (
            b'{"error":{"type":"x","message":"a \\" quote, cut at an escape \\u00',
            'a " quote, cut at an escape ',
        ),
        ('{"error":{"message":"cut inside é'.encode()[:-1], "cut inside \ufffd"),
    ],
)
def test_an_upstreams_own_words_are_found(body: bytes, message: str) -> None:
    assert error_of(upstream_said(body))["message"] == message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"error":null}',
        b'{"error":{"message":7}}',
        b'{"error":{"message":{"message":"x"}}}',
        b"\0\xff",
        b"[" * 4096,
        b'{"a":' * 800,
        b'{"error":{"message":""}}',
    ],
)
def test_where_an_upstream_says_nothing_we_do(body: bytes) -> None:
    assert error_of(upstream_said(body))["message"] == "batch item: upstream status 400"


def test_an_upstreams_words_are_bounded() -> None:
    body = json.dumps({"error": {"message": "x" * 4000}}).encode()
    assert error_of(upstream_said(body))["message"] == "x" * MESSAGE_CHARACTERS
