"""One call over a real socket: what goes upstream, and what comes of what comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from routing.calls.call import PriceList, PriceRate, Tokens
from routing.models import Binding, Host, HostKey, PolicyHostKey
from routing.secrets.encryption import encrypt
from routing.transport import idle_connections
from routing.upstream.send import send
from tests.support.calls.upstream_calls import BODIES, call_of
from tests.support.rows.catalog import make_catalog
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db

PATHS = {
    "openai": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "openai_embeddings": "/v1/embeddings",
    "anthropic": "/v1/messages",
}
TOKENS = {
    "openai": Tokens(input=60, cache_read=40, output=50),
    "openai_responses": Tokens(input=60, cache_read=40, output=50, reasoning=20),
    "openai_embeddings": Tokens(input=100, output=0),
    "anthropic": Tokens(input=60, cache_read=40, output=50),
}


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url, rates={"input": 2, "output": 8})


@pytest.mark.parametrize("adapter", list(PATHS))
def test_a_call_of_each_shape_is_answered(upstream: Upstream, catalog: SimpleNamespace, adapter: str) -> None:
    outcome = send(call_of(catalog, adapter=adapter))

    assert outcome.failure is None
    assert (outcome.status, outcome.sent, outcome.keys_tried) == (200, True, 1)
    assert outcome.tokens == TOKENS[adapter]
    assert json.loads(outcome.body)["usage"]
    (request,) = upstream.requests
    assert (request.method, request.path, request.body) == ("POST", PATHS[adapter], BODIES[adapter])


def test_the_target_has_the_names_and_prices_of_where_the_call_went(catalog: SimpleNamespace) -> None:
    target = send(call_of(catalog)).target

    assert (target.requested_model, target.model, target.adapter) == ("echo-1", "echo-1", "openai")
    assert (target.provider, target.host) == (catalog.provider.name, catalog.host.name)
    assert (target.host_key, target.policy) == (catalog.host_keys[0].name, catalog.policy.name)
    assert target.prices == PriceList(
        catalog.pricing.name, 1, "USD", (PriceRate("input", 2, 0), PriceRate("output", 8, 0))
    )


def test_only_the_headers_that_the_vendor_needs_go_upstream(
    upstream: Upstream, catalog: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_connections, "MIN_IDLE_SECONDS", 0.0)
    call = call_of(catalog)
    send(call)
    send(call)

    for request in upstream.requests:
        assert request.headers == {
            "host": f"127.0.0.1:{upstream.port}",
            "content-type": "application/json",
            "content-length": str(len(call.body)),
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
            "authorization": "Bearer upstream-secret",
            "idempotency-key": call.idempotency_key,
            "user-agent": "relaybatch",
        }
    assert [request.connection for request in upstream.requests] == [1, 1]


def test_an_anthropic_call_carries_its_callers_beta_and_version(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    send(call_of(catalog, adapter="anthropic"))
    send(call_of(catalog, adapter="anthropic", headers={"anthropic-beta": "a,b", "anthropic-version": "2"}))

    plain, own = (request.headers for request in upstream.requests)
    assert plain["x-api-key"] == own["x-api-key"] == "upstream-secret"
    assert "authorization" not in plain
    assert (plain["anthropic-version"], plain.get("anthropic-beta")) == ("2023-06-01", None)
    assert (own["anthropic-version"], own["anthropic-beta"]) == ("2", "a,b")


def test_a_header_that_cannot_be_sent_fails_the_call(upstream: Upstream, catalog: SimpleNamespace) -> None:
    outcome = send(call_of(catalog, adapter="anthropic", headers={"anthropic-beta": "a\r\nx: y"}))

    assert outcome.failure is not None
    assert outcome.failure.code == "invalid_item"
    assert upstream.requests == []


@pytest.mark.parametrize(
    "rest",
    [
        b'"n": 123456789012345678901234567890, "f": 1.0, "g": 1e3, "h": 1, "d": 0.1000000000000000000001',
        b'"z":1,"a":2,"z":3',
        b'"t":"\\u0000\\u00e9\\/"',
        '"t":"\u2028\u2029\u0085"'.encode(),
        b'  "messages" : [ ] \t',
    ],
)
def test_every_byte_but_the_models_name_is_the_callers(
    upstream: Upstream, catalog: SimpleNamespace, rest: bytes
) -> None:
    binding = catalog.models["openai"].bindings.get()
    binding.upstream_name = "vendor/echo\u2028"
    binding.save()

    send(call_of(catalog, body=b'{"model": "echo-1", ' + rest + b"}"))

    assert upstream.requests[0].body == b'{"model": "vendor/echo\xe2\x80\xa8", ' + rest + b"}"


def test_a_base_url_that_ends_in_v1_is_not_given_a_second_one(upstream: Upstream) -> None:
    catalog = make_catalog(upstream.url + "/gateway/v1/")
    send(call_of(catalog))

    assert upstream.requests[0].path == "/gateway/v1/chat/completions"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vendor/echo", "/a%7Eb/%41//vendor%2Fecho/chat/completions"),
        ("%2e%2e", "/a%7Eb/%41//%252e%252e/chat/completions"),
        ("..%2f?#", "/a%7Eb/%41//..%252f%3F%23/chat/completions"),
    ],
)
def test_the_path_reaches_the_socket_as_it_was_built(upstream: Upstream, name: str, path: str) -> None:
    catalog = make_catalog(upstream.url + "/a%7Eb/%41//{model}/")
    Binding.objects.filter(model=catalog.models["openai"]).update(upstream_name=name)
    send(call_of(catalog))

    assert upstream.requests[0].path == path


@pytest.mark.parametrize(
    ("base_path", "name"), [("/a/%2E%2e", "m"), ("/a/../b", "m"), ("/{model}", ".."), ("/{model}/b", ".")]
)
def test_steps_along_the_path_are_never_sent(upstream: Upstream, base_path: str, name: str) -> None:
    catalog = make_catalog(upstream.url + base_path)
    Binding.objects.filter(model=catalog.models["openai"]).update(upstream_name=name)
    outcome = send(call_of(catalog))

    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.retryable) == ("upstream_unreachable", True)
    assert outcome.failure.message.startswith(f"upstream unreachable: host {catalog.host.name}: ")
    assert upstream.requests == []


def test_a_binding_that_cannot_be_called_leaves_the_others(upstream: Upstream) -> None:
    catalog = make_catalog(upstream.url)
    odd = Host.objects.create(name="odd", base_url=upstream.url + "/..")
    key = HostKey.objects.create(name="odd", host=odd, secret_encrypted=encrypt(b"odd-secret"))
    PolicyHostKey.objects.create(policy=catalog.policy, host_key=key)
    Binding.objects.update(position=1)
    Binding.objects.create(model=catalog.models["openai"], host=odd, adapter="openai")

    assert send(call_of(catalog)).target.host == catalog.host.name


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{}", "model is missing"),
        (b'{"model":null}', "model is missing"),
        (b'{"model":""}', "model must be"),
        (b'{"model":7}', "model must be"),
        (b'{"model":"echo-1","\\u006dodel":"echo-1"}', "twice"),
        (b'{"model":"echo-1","Model":"echo-1"}', "twice"),
        (b'{"MODEL":"echo-2","model":"echo-1"}', "twice"),
        (b'{"model":"echo-1","messages":[{"model":1}],"\\u004dODEL":null}', "twice"),
        (b'{"Model":"echo-1"}', "model is missing"),
        (b'{"model":"\xff"}', "not JSON"),
        (b'{"model":"\\ud800"}', "not JSON"),
        (b'{"model":"echo-1","stream":true}', "stream"),
        (b'{"model":"echo-1","stream":"no"}', "stream"),
        (b'{"model":"echo-1","stream":0}', "stream"),
        (b"[]", "not a JSON object"),
        (b"nonsense", "not JSON"),
        (b"[" * 20_000 + b"]" * 20_000, "not"),
    ],
)
def test_what_no_shape_could_send_is_an_invalid_item(
    upstream: Upstream, catalog: SimpleNamespace, body: bytes, words: str
) -> None:
    outcome = send(call_of(catalog, body=body))

    assert outcome.failure is not None
    assert outcome.failure.code == "invalid_item"
    assert words in outcome.failure.message
    assert not outcome.failure.retryable
    assert (outcome.sent, upstream.requests) == (False, [])


@pytest.mark.parametrize("character", [b"x", "😀".encode(), b"\\ud83d\\ude00", b"\\n", b"\\u00e9"])
def test_a_model_of_a_megabyte_is_not_found_and_named_by_its_beginning(
    upstream: Upstream, catalog: SimpleNamespace, character: bytes
) -> None:
    name = character * (1_000_000 // len(character))
    outcome = send(call_of(catalog, body=b'{"model":"echo-1' + name + b'"}'))

    assert outcome.failure is not None
    assert outcome.failure.code == "model_not_found"
    assert len(outcome.failure.message) < 400
    assert outcome.target.requested_model == "echo-1" + json.loads(b'"' + character + b'"') * 294
    assert upstream.requests == []


@pytest.mark.parametrize("stream", [b"null", b"false"])
def test_no_stream_may_be_said_in_so_many_words(catalog: SimpleNamespace, stream: bytes) -> None:
    assert send(call_of(catalog, body=b'{"model":"echo-1","stream":' + stream + b"}")).failure is None


def test_an_unknown_model_fails_with_its_name_before_anything_is_sent(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    outcome = send(call_of(catalog, body=b'{"model":"no\\u0000such"}'))

    assert outcome.failure is not None
    assert outcome.failure.code == "model_not_found"
    assert "no\ufffdsuch" in outcome.failure.message
    assert outcome.target.requested_model == "no\ufffdsuch"
    assert (outcome.sent, outcome.status, outcome.keys_tried, upstream.requests) == (False, 0, 0, [])


def test_a_binding_of_another_shape_is_a_cross_shape_dispatch(catalog: SimpleNamespace) -> None:
    outcome = send(call_of(catalog, adapter="anthropic", body=BODIES["openai"]))

    assert outcome.failure is not None
    assert outcome.failure.code == "cross_shape"
    assert outcome.failure.message.startswith("cross-shape dispatch: ")
    assert (outcome.target.model, outcome.target.provider) == ("echo-1", catalog.provider.name)


def test_an_error_that_reports_usage_keeps_its_tokens(upstream: Upstream, catalog: SimpleNamespace) -> None:
    upstream.script(
        answers.json({"error": {}, "usage": {"prompt_tokens": 5, "completion_tokens": 0}}, status=500)
    )

    assert send(call_of(catalog)).tokens == Tokens(input=5, output=0)


def test_no_secret_and_no_body_is_in_any_repr(catalog: SimpleNamespace, upstream: Upstream) -> None:
    upstream.script(answers.json({"error": "the answer"}))
    call = call_of(catalog)
    outcome = send(call)

    text = repr(call) + repr(outcome)
    assert "upstream-secret" not in text
    assert "the answer" not in text
    assert '"hi"' not in text
