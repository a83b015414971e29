"""What comes of each odd answer that an upstream, or a proxy before it, has been seen to give."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from routing.calls.call import Tokens
from routing.upstream.send import send
from tests.support.calls.upstream_calls import call_of
from tests.support.rows.catalog import make_catalog
from tests.support.rows.gate_state import clear_gate
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import Settings

    from routing.calls.call import Outcome
    from routing.calls.failures import Failure
    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


def failure_of(outcome: Outcome) -> Failure:
    assert outcome.failure is not None
    return outcome.failure


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(answers.html(), "not JSON", id="html"),
        pytest.param(answers.body(b""), "empty", id="empty"),
        pytest.param(answers.body(b" \n "), "empty", id="blank"),
        pytest.param(answers.body(b"[1]"), "not a JSON object", id="array"),
        pytest.param(answers.body(b'"text"'), "not a JSON object", id="string"),
        pytest.param(answers.body(b'{"choices":[NaN]}'), "not JSON", id="nan"),
        pytest.param(answers.body(b'{"choices":[-Infinity]}'), "not JSON", id="infinity"),
        pytest.param(answers.body(b'{"choices":"\xff"}'), "not UTF-8", id="utf-8"),
        pytest.param(answers.body(b'{"choices":"\xed\xa0\x80"}'), "not UTF-8", id="raw surrogate"),
        pytest.param(answers.body('{"choices":[]}'.encode("utf-16")), "not UTF-8", id="utf-16"),
        pytest.param(answers.body(b'{"choices":[]} trailing'), "not JSON", id="garbage after"),
        pytest.param(answers.body(b'{"choices":' + b"[" * 50_000 + b"]" * 50_000 + b"}"), "deep", id="depth"),
        pytest.param(answers.sse(), "event stream", id="sse"),
        pytest.param(
            answers.body(b"x", headers={"Content-Encoding": "br"}), "encoding that was not asked", id="br"
        ),
        pytest.param(answers.body(b"x", headers={"Content-Encoding": "gzip, zstd"}), "not asked", id="zstd"),
        pytest.param(
            answers.body(b"no gzip", headers={"Content-Encoding": "gzip"}),
            "encoding is broken",
            id="bad gzip",
        ),
        pytest.param(answers.cut_short(b'{"choices":[]}'), "cut short", id="length too long"),
        pytest.param(answers.chunked(b'{"choices":', ended=False), "cut short", id="no last chunk"),
        pytest.param(
            answers.reset(after=HEAD + b"Content-Length: 99\r\n\r\n{"), "cut short", id="reset inside"
        ),
        pytest.param(answers.close(), "lost before an answer", id="closed"),
        pytest.param(answers.reset(), "lost before an answer", id="reset"),
        pytest.param(answers.raw(b"SSH-2.0-OpenSSH_9\r\n"), "lost before an answer", id="not HTTP"),
        pytest.param(answers.raw(HEAD), "lost before an answer", id="closed within the headers"),
        pytest.param(answers.raw(HEAD + b"X: y\r\n"), "lost before an answer", id="closed behind a header"),
        pytest.param(answers.raw(HEAD + b"X: " + b"y" * 100_000), "headers cannot be read", id="long header"),
        pytest.param(
            answers.raw(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"),
            "headers cannot be read",
            id="two lengths",
        ),
    ],
)
def test_an_answer_that_cannot_be_read_is_retryable_and_counts_as_sent(
    upstream: Upstream, catalog: SimpleNamespace, answer: Answer, words: str
) -> None:
    upstream.script(answer)
    outcome = send(call_of(catalog))
    failure = failure_of(outcome)

    assert failure.code == "upstream_unreadable"
    assert "upstream response" in failure.message
    assert words in failure.message
    assert failure.retryable
    assert (outcome.sent, outcome.keys_tried, outcome.body, outcome.tokens) == (True, 1, b"", None)
    clear_gate()
    assert send(call_of(catalog)).failure is None, "the next call must not meet what is left of this one"


@pytest.mark.parametrize("status", [200, 401])
def test_a_host_key_that_an_upstream_quotes_is_not_kept(
    upstream: Upstream, catalog: SimpleNamespace, status: int
) -> None:
    said = b'{"error":{"message":"Incorrect API key: upstream-secret. Given: upstrea*****ret."}}'
    upstream.script(answers.body(said, status=status))
    failure = failure_of(send(call_of(catalog)))

    assert json.loads(failure.upstream_error)["error"]["message"] == "Incorrect API key: ***. Given: ***."


def test_an_error_with_status_200_is_unreadable_with_the_upstreams_words_kept(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    body = {"error": {"message": "overloaded"}, "usage": {"prompt_tokens": 3, "completion_tokens": 0}}
    upstream.script(answers.json(body))
    outcome = send(call_of(catalog))
    failure = failure_of(outcome)

    assert failure.code == "upstream_unreadable"
    assert json.loads(failure.upstream_error) == body
    assert (failure.upstream_status, outcome.status) == (200, 200)
    assert outcome.tokens == Tokens(input=3, output=0)


@pytest.mark.parametrize(
    ("adapter", "body"),
    [
        ("openai", {"choices": None}),
        ("openai", {"choices": [], "error": {"message": "partly"}}),
        ("openai", {"choices": [{}], "usage": None}),
        ("openai", {"choices": [{}], "usage": "many"}),
        ("openai", {"choices": [{}], "usage": [1]}),
        ("openai", {"choices": [{}], "usage": {"prompt_tokens": -1, "completion_tokens": 1}}),
        ("openai", {"choices": [{}], "usage": {"prompt_tokens": 2**70, "completion_tokens": 1}}),
        ("openai", {"choices": [{}], "usage": {"prompt_tokens": True, "completion_tokens": 1}}),
        ("openai_responses", {"output": [], "error": None}),
        ("openai_responses", {"output": [], "error": {"code": "server_error"}, "status": "failed"}),
        ("anthropic", {"content": []}),
        ("anthropic", {"content": [], "usage": {"input_tokens": "1", "output_tokens": 1}}),
    ],
)
def test_an_answer_with_its_shapes_fields_is_complete_and_its_odd_usage_unknown(
    upstream: Upstream, catalog: SimpleNamespace, adapter: str, body: dict[str, Any]
) -> None:
    upstream.script(answers.json(body))
    outcome = send(call_of(catalog, adapter=adapter))

    assert outcome.failure is None
    assert json.loads(outcome.body) == body
    assert outcome.tokens is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices":"\\u0000 \\ud800 \\udc00\\ud800 \\\\ud800","usage":{"prompt_tokens":1,"completion_tokens":2}}',
        b'{"choices":1180591620717411303424,"usage":{"prompt_tokens":1,"completion_tokens":2,"x":1e3}}',
        b'\n{"usage":{"completion_tokens":2,"prompt_tokens":1,"\\ud800":"\\ud800"}, "choices" :[ ]}\r\n',
    ],
)
def test_what_json_allows_is_kept_as_received(
    upstream: Upstream, catalog: SimpleNamespace, body: bytes
) -> None:
    upstream.script(answers.body(body))
    outcome = send(call_of(catalog))

    assert outcome.failure is None
    assert outcome.body == body
    assert outcome.tokens == Tokens(input=1, output=2)


@pytest.mark.parametrize(
    "answer",
    [
        answers.gzip(answers.CHAT),
        answers.deflate(answers.CHAT),
        answers.chunked(*[bytes([byte]) for byte in json.dumps(answers.CHAT).encode()]),
        answers.raw(HEAD + b"Connection: close\r\n\r\n" + json.dumps(answers.CHAT).encode()),
        answers.raw(b"HTTP/1.0 200 OK\r\n\r\n" + json.dumps(answers.CHAT).encode()),
        answers.body(json.dumps(answers.CHAT).encode(), content_type="text/plain"),
        answers.json(answers.CHAT, status=201),
        answers.raw(
            b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 14\r\n\r\n" + b'{"choices":[]}'
        ),
    ],
)
def test_every_proper_way_of_writing_an_answer_is_read(
    upstream: Upstream, catalog: SimpleNamespace, answer: Answer
) -> None:
    upstream.script(answer)
    outcome = send(call_of(catalog))

    assert outcome.failure is None
    assert "choices" in json.loads(outcome.body)


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *[(code, True) for code in (408, 409, 429, 500, 502, 503, 504, 529)],
        *[(code, False) for code in (300, 302, 307, 400, 401, 403, 404, 413, 422)],
    ],
)
def test_any_other_status_fails_the_call_and_says_so(
    upstream: Upstream, catalog: SimpleNamespace, status: int, retryable: bool
) -> None:
    upstream.script(answers.status(status, headers={"Location": f"{upstream.url}/elsewhere"}))
    outcome = send(call_of(catalog))
    failure = failure_of(outcome)

    assert failure.code == "upstream_status"
    assert failure.message == f"batch item: upstream status {status}"
    assert failure.retryable is retryable
    assert (failure.upstream_status, outcome.status, outcome.sent) == (status, status, True)
    assert b"scripted" in failure.upstream_error
    assert [request.path for request in upstream.requests] == ["/v1/chat/completions"], (
        "no redirect is followed"
    )


def test_the_html_of_a_proxy_is_kept_as_the_upstreams_error(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    upstream.script(answers.html(code=502))
    failure = failure_of(send(call_of(catalog)))

    assert (failure.code, failure.upstream_status, failure.retryable) == ("upstream_status", 502, True)
    assert failure.upstream_error.startswith(b"<html>")


@pytest.mark.parametrize(
    "answer",
    [
        answers.body("é".encode() * 3000 + b"\x00", status=400),
        answers.body(b"x" * 10_000_000, status=400),
        answers.body(gzip.compress(b"x" * 10_000_000), status=400, headers={"Content-Encoding": "gzip"}),
        answers.raw(b"HTTP/1.1 400 Bad\r\nContent-Length: 9000\r\n\r\n" + b"x" * 5000),
    ],
)
def test_of_an_error_body_the_first_4096_bytes_are_kept(
    upstream: Upstream, catalog: SimpleNamespace, answer: Answer
) -> None:
    upstream.script(answer)
    failure = failure_of(send(call_of(catalog)))

    assert failure.upstream_status == 400
    assert len(failure.upstream_error) == 4096
    assert send(call_of(catalog)).failure is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *[("7", 7), ("0", 0), ("-5", 0), ("inf", 0), ("nan", 0), ("soon", 0), ("1e9", 900), ("100000", 900)],
        *[("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("Fri, 31 Dec 2999 23:59:59 GMT", 900)],
    ],
)
def test_retry_after_is_honoured_within_bounds(
    upstream: Upstream, catalog: SimpleNamespace, value: str, seconds: float
) -> None:
    upstream.script(answers.status(429, headers={"Retry-After": value}))

    assert failure_of(send(call_of(catalog))).retry_after_seconds == seconds


def test_without_retry_after_nothing_is_said_of_when(upstream: Upstream, catalog: SimpleNamespace) -> None:
    upstream.script(answers.status(429))

    assert failure_of(send(call_of(catalog))).retry_after_seconds is None


LARGE = b'{"choices":"' + b"a" * 20_000_000 + b'"}'


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answers.body(LARGE), id="with its length"),
        pytest.param(
            answers.chunked(*[LARGE[at : at + 500_000] for at in range(0, len(LARGE), 500_000)]), id="chunked"
        ),
        pytest.param(answers.raw(HEAD + b"\r\n" + LARGE), id="until the end of the connection"),
        pytest.param(
            answers.body(gzip.compress(LARGE), headers={"Content-Encoding": "gzip"}), id="gzip bomb"
        ),
        pytest.param(
            answers.body(zlib.compress(LARGE), headers={"Content-Encoding": "deflate"}), id="deflate bomb"
        ),
        pytest.param(
            answers.raw(
                HEAD
                + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
                + b"%x\r\n%b\r\n0\r\n\r\n" % (len(gzip.compress(LARGE)), gzip.compress(LARGE))
            ),
            id="gzip bomb in one chunk",
        ),
    ],
)
def test_a_too_large_answer_is_refused_without_being_held(
    upstream: Upstream, catalog: SimpleNamespace, settings: Settings, answer: Answer
) -> None:
    settings.RELAY_MAX_RESPONSE_BYTES = 1_000_000
    upstream.script(answer)
    call = call_of(catalog)
    tracemalloc.start()
    try:
        failure = failure_of(send(call))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert failure.code == "upstream_unreadable"
    assert "larger than 1000000 bytes" in failure.message
    assert peak < 8_000_000
    assert send(call_of(catalog)).failure is None


def test_an_answer_of_exactly_the_limit_is_kept(
    upstream: Upstream, catalog: SimpleNamespace, settings: Settings
) -> None:
    body = b'{"choices":[]}'
    settings.RELAY_MAX_RESPONSE_BYTES = len(body)
    upstream.script(answers.body(body), answers.chunked(body))

    assert send(call_of(catalog)).body == body
    assert send(call_of(catalog)).body == body
    settings.RELAY_MAX_RESPONSE_BYTES = len(body) - 1
    upstream.script(answers.body(body), answers.chunked(body))
    assert failure_of(send(call_of(catalog))).code == "upstream_unreadable"
    assert failure_of(send(call_of(catalog))).code == "upstream_unreadable"
