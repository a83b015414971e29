"""Which failures lead to another host key, to a redial, or to another binding."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from routing.models import Binding, Host, HostHeader, HostKey, PolicyHostKey
from routing.resolution import resolve
from routing.secrets.encryption import encrypt
from routing.upstream.send import send
from tests.support.calls.upstream_calls import call_of
from tests.support.rows.catalog import make_catalog
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url, host_key_values=("one", "two", "three", "four"))


def credentials(upstream: Upstream) -> list[str]:
    return [request.credential for request in upstream.requests]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def add_binding(catalog: SimpleNamespace, url: str, *, adapter: str = "openai", position: int = 1) -> HostKey:
    """Another host for the model `echo-1`, with one key of the policy's."""
    name = f"{catalog.host.name}-{position}"
    host = Host.objects.create(name=name, base_url=url)
    key = HostKey.objects.create(name=name, host=host, secret_encrypted=encrypt(name.encode()))
    PolicyHostKey.objects.create(policy=catalog.policy, host_key=key, position=10 + position)
    Binding.objects.create(model=catalog.models["openai"], host=host, adapter=adapter, position=position)
    return key


def point_host_at(catalog: SimpleNamespace, url: str) -> None:
    catalog.host.base_url = url
    catalog.host.save()
    resolve.clear_cache()


@pytest.mark.parametrize(
    "failed_response",
    [
        *[answers.status(code) for code in (401, 402, 403, 429, 500, 502, 503, 529)],
        answers.close(),
        answers.reset(),
        answers.cut_short(b"{}"),
        answers.chunked(b"{", ended=False),
    ],
)
def test_a_failure_that_another_key_may_not_have_leads_to_the_next_key(
    upstream: Upstream, catalog: SimpleNamespace, failed_response: Answer
) -> None:
    upstream.script(failed_response)
    call = call_of(catalog)
    outcome = send(call)

    assert outcome.failure is None
    assert credentials(upstream) == ["one", "two"]
    assert outcome.keys_tried == 2
    assert outcome.target.host_key == catalog.host_keys[1].name
    assert {request.headers["idempotency-key"] for request in upstream.requests} == {call.idempotency_key}
    assert {request.body for request in upstream.requests} == {call.body}


def test_at_most_three_requests_go_out_each_with_another_key(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    upstream.handler = lambda request: answers.status(503 if request.credential != "three" else 429)
    outcome = send(call_of(catalog))

    assert outcome.failure is not None
    assert outcome.failure.upstream_status == 429
    assert credentials(upstream) == ["one", "two", "three"]
    assert outcome.keys_tried == 3


@pytest.mark.parametrize(
    "final",
    [
        *[answers.status(code) for code in (302, 400, 404, 408, 409, 413, 422)],
        answers.html(),
        answers.json({"error": "in 200"}),
    ],
)
def test_every_other_answer_is_final_for_the_attempt(
    upstream: Upstream, catalog: SimpleNamespace, final: Answer
) -> None:
    upstream.script(final)
    outcome = send(call_of(catalog))

    assert outcome.failure is not None
    assert credentials(upstream) == ["one"]


def test_a_host_that_cannot_be_reached_is_tried_three_times_and_nothing_counts_as_sent(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    point_host_at(catalog, f"http://127.0.0.1:{closed_port()}")
    outcome = send(call_of(catalog))

    assert outcome.failure is not None
    assert outcome.failure.code == "upstream_unreachable"
    assert outcome.failure.message == "upstream unreachable: Connection refused"
    assert outcome.failure.retryable
    assert (outcome.sent, outcome.keys_tried, outcome.status) == (False, 0, 0)
    assert outcome.target.host_key == catalog.host_keys[0].name


@contextlib.contextmanager
def tls_that_fails(times: int) -> Iterator[tuple[str, list[int]]]:
    """A listener that takes connections and breaks the first handshakes: a connection that cannot be made."""
    connections: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while len(connections) < times:
                    sock, _ = listener.accept()
                    connections.append(1)
                    sock.recv(1)
                    sock.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}", connections
    thread.join(10)


def test_each_attempt_to_connect_is_a_new_connection_with_the_same_key(catalog: SimpleNamespace) -> None:
    with tls_that_fails(3) as (url, connections):
        point_host_at(catalog, url)
        outcome = send(call_of(catalog))

    assert outcome.failure is not None
    assert outcome.failure.code == "upstream_unreachable"
    assert outcome.failure.message == "upstream unreachable: the connection broke while it was being made"
    assert len(connections) == 3
    assert not outcome.sent


def test_when_a_host_cannot_be_reached_the_next_binding_is_tried(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    point_host_at(catalog, f"http://127.0.0.1:{closed_port()}")
    add_binding(catalog, upstream.url, adapter="anthropic", position=1)
    key = add_binding(catalog, upstream.url, position=2)
    outcome = send(call_of(catalog))

    assert outcome.failure is None
    assert credentials(upstream) == [key.name], "a binding of another adapter is passed over"
    assert (outcome.target.host, outcome.target.host_key) == (key.host.name, key.name)
    assert outcome.keys_tried == 1


def test_a_failed_key_does_not_lead_to_another_binding(upstream: Upstream, catalog: SimpleNamespace) -> None:
    add_binding(catalog, upstream.url)
    upstream.handler = lambda _: answers.status(500)
    send(call_of(catalog))

    assert credentials(upstream) == ["one", "two", "three"]


def test_a_key_whose_secret_cannot_be_read_is_passed_over(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    one, two, *_ = catalog.host_keys
    HostKey.objects.filter(id=one.id).update(env_name="UPSTREAM_TEST_UNSET_KEY", secret_encrypted=None)
    HostKey.objects.filter(id=two.id).update(secret_encrypted=encrypt(b"no header\r\nholds: this"))
    send(call_of(catalog))

    assert credentials(upstream) == ["three"]


def test_an_idle_connection_is_not_used_again_after_the_upstream_hung_up(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    assert send(call_of(catalog)).failure is None
    upstream.hang_up()
    outcome = send(call_of(catalog))

    assert outcome.failure is None
    assert outcome.keys_tried == 1
    assert upstream.connections == 2


def test_a_host_that_cannot_be_called_now_fails_its_items_as_unreachable_whatever_else_the_model_has(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    """The header's file or variable is missing for a moment; a `cross_shape` would be final."""
    add_binding(catalog, upstream.url, adapter="anthropic")
    HostHeader.objects.create(host=catalog.host, name="X-Token", env_name="UPSTREAM_TEST_UNSET")
    resolve.clear_cache()
    failure = send(call_of(catalog)).failure
    assert failure is not None
    assert (failure.code, failure.retryable) == ("upstream_unreachable", True)
    assert "UPSTREAM_TEST_UNSET" in failure.message


@pytest.mark.parametrize("position", [0, 1])
def test_a_binding_of_an_adapter_that_only_a_later_release_has_is_no_way_of_calling(
    upstream: Upstream, catalog: SimpleNamespace, position: int
) -> None:
    """While an upgrade is under way, or after it was taken back."""
    Binding.objects.update(position=1 - position)
    add_binding(catalog, upstream.url, adapter="of_a_later_release", position=position)
    resolve.clear_cache()
    assert send(call_of(catalog)).failure is None
