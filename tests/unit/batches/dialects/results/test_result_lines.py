"""Result lines of the collections with `custom_id`: one form for two kinds of reader."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from batches.dialects.results.result_lines import render_result_line
from batches.dialects.results.upstream_message import MAX_MESSAGE_CHARACTERS
from batches.results.result_rows import ResultRow
from batches.results.results import Result

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
        "upstream_request_id": "",
    }
    return Result(ResultRow(**known | fields), response, None)


def upstream_said(body: bytes, status: int = 400) -> Result:
    return result(
        error_code="upstream_status",
        error=f"batch item: upstream status {status}",
        upstream_status=status,
        upstream_error=body,
    )


def rendered(found: Result, *, nested: bool = True) -> dict[str, Any]:
    line = b"".join(render_result_line(found, nested=nested))
    assert line.endswith(b"\n")
    assert line.isascii()
    assert len(line.splitlines()) == 1
    value: dict[str, Any] = json.loads(line)
    assert list(value) == ["custom_id", "result"]
    return value


def error_of(found: Result) -> dict[str, Any]:
    error: dict[str, Any] = rendered(found)["result"]["error"]
    return error


def test_a_success_holds_the_answer_token_for_token() -> None:
    answer = (
        '{\r\n "n":1.0, "big":1180591620717411303424,\n"t":"\u2028\u0085😀\\u0000\\ud800", "n":1e3}'.encode()
    )
    line = b"".join(render_result_line(result("completed", answer), nested=True))
    assert line == (
        b'{"custom_id":"a","result":{"type":"succeeded","message":'
        rb'{   "n":1.0, "big":1180591620717411303424, "t":"\u2028\u0085\ud83d\ude00\u0000\ud800", "n":1e3}'
        b"}}\n"
    )


def test_an_odd_custom_id_is_escaped() -> None:
    assert rendered(result("expired", custom_id="é\n\u2028😀"))["custom_id"] == "é\n\u2028😀"


@pytest.mark.parametrize(("state", "kind"), [("cancelled", "canceled"), ("expired", "expired")])
def test_what_did_not_run_says_so_and_no_more(state: str, kind: str) -> None:
    assert rendered(result(state, error_code=state))["result"] == {"type": kind}


def test_an_error_serves_readers_of_both_forms() -> None:
    found = result(error_code="timeout", error="timed out after 300 s")
    inner = {"type": "timeout_error", "message": "timed out after 300 s"}
    rest = {"message": "timed out after 300 s", "error": inner, "request_id": str(ITEM_ID)}
    assert rendered(found, nested=True)["result"] == {"type": "errored", "error": {"type": "error", **rest}}
    assert rendered(found, nested=False)["result"] == {
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
    error = error_of(upstream_said(b"", status))
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
        (b"model is overloaded, slow down\nsecond line", "model is overloaded, slow down\nsecond line"),
        (b'{"error":" ","message":"","detail":"the first that is said"}', "the first that is said"),
        (b'{"error":{"message":"two\nlines"}}', "two\nlines"),
        (rb'{"error":{"message":"half \ud800 and \u0000"}}', "half ? and \0"),
        ('{"error":{"message":"\u2028\u0085é😀"}}'.encode(), "\u2028\u0085é😀"),
        (b'\xef\xbb\xbf{"error":{"message":"behind a mark"}}', "behind a mark"),
    ],
)
def test_an_upstreams_own_words_are_found(body: bytes, message: str) -> None:
    assert error_of(upstream_said(body))["message"] == message


@pytest.mark.parametrize(
    ("body", "kind", "message", "request_id"),
    [
        pytest.param(
            b'[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]',
            *("invalid_request_error", "API key not valid.", None),
            id="Gemini",
        ),
        pytest.param(
            b'[{"error":{"type":"rate_limit_error","message":"slow down"},"request_id":"req_1"}]',
            *("rate_limit_error", "slow down", "req_1"),
            id="a list around an Anthropic form",
        ),
        pytest.param(
            b'{"object":"error","message":{"detail":[{"type":"missing","loc":["body","model"],'
            b'"msg":"Field required","input":"a prompt"}]},"type":"invalid_request_error","code":null}',
            *("invalid_request_error", "Field required", None),
            id="Mistral, invalid fields",
        ),
        pytest.param(
            b'{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}',
            *("invalid_request_error", "Invalid model: x", None),
            id="Mistral, vLLM",
        ),
        pytest.param(
            b'{"result":null,"success":false,"errors":[{"code":5007,"message":"No such model x or task"},'
            b'{"code":3003,"message":"Incomplete request"}],"messages":[]}',
            *("invalid_request_error", "No such model x or task; Incomplete request", None),
            id="Cloudflare",
        ),
        pytest.param(
            b'{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":{}}]}',
            *("invalid_request_error", "Field required", None),
            id="FastAPI",
        ),
        pytest.param(
            b'{"detail":{"error":{"message":"no such model","type":"not_found_error"}}}',
            *("not_found_error", "no such model", None),
            id="FastAPI around another form",
        ),
        pytest.param(
            b'{"error":"Input validation error: inputs tokens + max_new_tokens","error_type":"validation"}',
            *("invalid_request_error", "Input validation error: inputs tokens + max_new_tokens", None),
            id="TGI",
        ),
        pytest.param(
            b'{"error":["Error in `parameters.top_p`: must be below 1"]}',
            *("invalid_request_error", "Error in `parameters.top_p`: must be below 1", None),
            id="Hugging Face",
        ),
        pytest.param(
            b'{"message":"The provided model identifier is invalid."}',
            *("invalid_request_error", "The provided model identifier is invalid.", None),
            id="Bedrock",
        ),
        pytest.param(
            b'{"__type":"com.amazon.coral.service#ExpiredTokenException","Message":"The token is expired"}',
            *("invalid_request_error", "The token is expired", None),
            id="AWS, older services",
        ),
        pytest.param(
            b'{"code":"InvalidParameter","message":"Range of input length","request_id":"7438d53d"}',
            *("invalid_request_error", "Range of input length", "7438d53d"),
            id="DashScope",
        ),
        pytest.param(
            b'{"code":"The request is invalid","error":"Model x does not exist"}',
            *("invalid_request_error", "Model x does not exist", None),
            id="xAI",
        ),
        pytest.param(b'"model not loaded"', "invalid_request_error", "model not loaded", None, id="a string"),
        pytest.param(
            b"<html>\n<head><title>413 Request Entity Too Large</title></head>\n</html>\n",
            "invalid_request_error",
            "<html>\n<head><title>413 Request Entity Too Large</title></head>\n</html>",
            None,
            id="a page of nginx",
        ),
        pytest.param(
            b'{"code":7,"reason":"none that we know"}',
            *("invalid_request_error", '{"code":7,"reason":"none that we know"}', None),
            id="an unknown form",
        ),
        pytest.param(
            b'{"error":{"type":"billing_error"},"message":"no credit"}',
            *("billing_error", "no credit", None),
            id="the type alone inside",
        ),
    ],
)
def test_the_forms_of_vendors_are_known(body: bytes, kind: str, message: str, request_id: str | None) -> None:
    error = error_of(upstream_said(body))
    assert error["error"] == {"type": kind, "message": message}
    assert error["request_id"] == (request_id or str(ITEM_ID))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"cut in the mid', "cut in the mid"),
        (
            b'{"error":{"type":"x","message":"a \\" quote, cut at an escape \\u00',
            'a " quote, cut at an escape ',
        ),
        (b'{"error":{"message":"cut behind a backslash \\', "cut behind a backslash "),
        (b'{"error":{"message":"cut behind a whole one \\\\', "cut behind a whole one \\"),
        (rb'{"error":{"message":"cut in a pair \ud83d\ude', "cut in a pair "),
        ('{"error":{"message":"cut inside é'.encode()[:-1], "cut inside \ufffd"),
        (b'[{"error":{"code":400,"message":"cut in a list', "cut in a list"),
        (b'{"error":{"message":"said before","param', "said before"),
        (b'{"error":{"message":"said before","param":', "said before"),
        (b'{"error":{"message":"said before","param":nu', "said before"),
        (b'{"error":{"message":"said before","param":[1,[2', "said before"),
        (b'{"error":{"message":"said before"},', "said before"),
        (b'{"detail":[{"msg":"the first","input":{"a":"b"}},{"msg":"the sec', "the first; the sec"),
        (b'"a bare string, cut', "a bare string, cut"),
    ],
)
def test_an_upstreams_words_are_found_in_a_body_that_was_cut(body: bytes, message: str) -> None:
    assert error_of(upstream_said(body))["message"] == message


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"[]", "[]"),
        (b"null", "null"),
        (b'{"error":null}', '{"error":null}'),
        (b'{"error":{"message":7}}', '{"error":{"message":7}}'),
        (b'{"error":{"message":""}}', '{"error":{"message":""}}'),
        (b'{"error":[[[[[null,1.5,true]]]]]}', '{"error":[[[[[null,1.5,true]]]]]}'),
        (b'{"message":NaN,"detail":[7,{"msg":[]}]}', '{"message":NaN,"detail":[7,{"msg":[]}]}'),
        (b"{'error': 'of another language'}", "{'error': 'of another language'}"),
        (b'{"error":{"message":"no \\x escape"}} and more', '{"error":{"message":"no \\x escape"}} and more'),
        (b"\0\xff", "\0\ufffd"),
        (b"[" * 4096, "[" * 500),
        (b"[" * 1000 + b'"deep"' + b"]" * 1000, "[" * 500),
        (b'{"a":' * 800, '{"a":' * 100),
        (b'{"error":' * 400, ('{"error":' * 56)[:500]),
        (b"[" * 900 + b'"deep"' + b"]" * 900, "[" * 500),
        (b'{"error":' * 11 + b'"deep"' + b"}" * 11, '{"error":' * 11 + '"deep"' + "}" * 11),
        (
            b'{"error":{"message":"no \\u12 escape, and more"}}',
            '{"error":{"message":"no \\u12 escape, and more"}}',
        ),
        (b"1" * 4096, "1" * 500),
        (b"," * 4096, "," * 500),
        ("é".encode() * 2048, "é" * 500),
        (b'{"n":' + b"1" * 4300 + b"}", '{"n":' + "1" * 495),
    ],
)
def test_words_that_are_in_no_known_place_are_given_as_they_came(body: bytes, text: str) -> None:
    assert error_of(upstream_said(body))["message"] == text


@pytest.mark.parametrize("body", [b"", b" \r\n\t", b"\xef\xbb\xbf"])
def test_where_an_upstream_says_nothing_we_do(body: bytes) -> None:
    assert error_of(upstream_said(body))["message"] == "batch item: upstream status 400"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"Overloaded"}}', "Overloaded"),
        (b"upstream connect error or disconnect/reset", "upstream connect error or disconnect/reset"),
        (b"<html>502 Bad Gateway</html>", "batch item: upstream status 502"),
        (b'{"code":7}', "batch item: upstream status 502"),
    ],
)
def test_a_page_of_a_gateway_that_failed_is_put_into_our_words(body: bytes, message: str) -> None:
    """Of an answer that is not about the request, markup tells nobody anything."""
    assert error_of(upstream_said(body, 502))["message"] == message


def test_an_upstreams_words_are_bounded() -> None:
    body = json.dumps({"error": {"message": "x" * 4000}}).encode()
    assert error_of(upstream_said(body))["message"] == "x" * MAX_MESSAGE_CHARACTERS
