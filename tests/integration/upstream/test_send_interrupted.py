"""A call ends at its deadline, and at once when another thread aborts it, whatever it is doing."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection

from routing.resolution import resolve
from routing.upstream.send import send
from tests.support.calls.upstream_calls import Aborter, call_of
from tests.support.rows.catalog import make_catalog
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db

# How soon after its deadline or an abort a call has to be over and its slot free: the promise, not the usual time.
FREE_SECONDS = 2
SLOW_HEADERS = b"HTTP/1.1 200 OK\r\nX-Slow: "


def dripping_headers() -> Answer:
    """A header line that comes byte by byte: each read succeeds, none ends it."""
    return answers.drip(every_seconds=0.05, head=SLOW_HEADERS)


HANGS = {
    "no headers": answers.hang(),
    "slow headers": dripping_headers(),
    "no body": answers.hang_in_body(),
    "slow body": answers.drip(every_seconds=0.05),
    "a body until the end of the connection": answers.hang(after=b'HTTP/1.1 200 OK\r\n\r\n{"choices":[]}'),
    "an error without its body": answers.hang(after=b"HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\n{"),
    "a chunk that does not end": answers.hang(
        after=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"
    ),
}


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url, host_key_values=("one", "two"))


def point_host_at(catalog: SimpleNamespace, url: str) -> None:
    catalog.host.base_url = url
    catalog.host.save()
    resolve.clear_cache()


@contextlib.contextmanager
def port_that_does_not_answer() -> Iterator[int]:
    """A listener whose queue is full: the kernel drops what would connect, so a connect hangs."""
    with contextlib.ExitStack() as open_until_then:
        listener = open_until_then.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):
            filler = open_until_then.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@contextlib.contextmanager
def port_without_a_handshake() -> Iterator[int]:
    """TCP connects, and then nothing is said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("hang", list(HANGS))
def test_the_deadline_is_total_whatever_the_upstream_does(
    upstream: Upstream, catalog: SimpleNamespace, hang: str
) -> None:
    upstream.script(HANGS[hang])
    began = time.monotonic()
    outcome = send(call_of(catalog, seconds=0.5))

    assert 0.5 <= time.monotonic() - began < 0.5 + FREE_SECONDS
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.retryable) == ("timeout", True)
    assert outcome.failure.message == "timed out after 0.5 s"
    assert (outcome.sent, outcome.keys_tried) == (True, 1)
    assert 100 <= outcome.upstream_ms < 1500


def test_the_deadline_is_total_over_keys(upstream: Upstream, catalog: SimpleNamespace) -> None:
    upstream.script(answers.after(0.3, answers.status(500)), answers.hang())
    began = time.monotonic()
    outcome = send(call_of(catalog, seconds=0.6))

    assert 0.6 <= time.monotonic() - began < 0.5 + FREE_SECONDS
    assert outcome.failure is not None
    assert outcome.failure.code == "timeout"
    assert outcome.keys_tried == 2


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_connect_or_a_handshake_that_hangs_ends_at_the_deadline(
    catalog: SimpleNamespace, scheme: str
) -> None:
    with port_that_does_not_answer() if scheme == "http" else port_without_a_handshake() as port:
        point_host_at(catalog, f"{scheme}://127.0.0.1:{port}")
        began = time.monotonic()
        outcome = send(call_of(catalog, seconds=0.5))

    assert 0.5 <= time.monotonic() - began < 0.5 + FREE_SECONDS
    assert outcome.failure is not None
    assert outcome.failure.code == "timeout"
    assert not outcome.sent


def test_a_database_that_is_slow_to_say_where_a_call_goes_uses_up_none_of_its_time(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    """As long as a failover of the database may take: no call fails because of an outage of our own."""
    upstream.script(answers.usable())
    resolve.clear_cache()
    with connection.execute_wrapper(late):
        outcome = send(call_of(catalog, seconds=0.4))
    assert outcome.failure is None


def test_while_the_database_is_unavailable_no_deadline_runs(catalog: SimpleNamespace) -> None:
    call = call_of(catalog)
    resolve.clear_cache()
    with connection.execute_wrapper(away), pytest.raises(OperationalError):
        send(call)
    assert call.abort_handle.deadline is None, (
        "the call is made again later, and the watch would cut it before"
    )


def away(*_: Any) -> Any:
    raise OperationalError


def late(execute: Callable[..., Any], *statement: Any) -> Any:
    time.sleep(0.5)
    return execute(*statement)


def test_a_deadline_that_passed_already_sends_nothing(upstream: Upstream, catalog: SimpleNamespace) -> None:
    outcome = send(call_of(catalog, seconds=-1))

    assert outcome.failure is not None
    assert outcome.failure.code == "timeout"
    assert (outcome.sent, upstream.requests) == (False, [])


@pytest.mark.parametrize("hang", list(HANGS))
def test_an_abort_ends_the_call_and_hangs_up(upstream: Upstream, catalog: SimpleNamespace, hang: str) -> None:
    upstream.script(HANGS[hang])
    call = call_of(catalog)

    def once_it_waits() -> None:
        upstream.wait_for(lambda up: up.in_flight == 1)
        threading.Event().wait(0.1)  # Long enough for it to read what came; no event shows when it has.

    cutter = Aborter(call.abort_handle, reason="cancelled", when=once_it_waits)
    outcome = send(call)

    assert time.monotonic() - cutter.at < FREE_SECONDS
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.retryable) == ("cancelled", False)
    assert outcome.failure.message == "cancelled while running"
    assert outcome.sent
    upstream.wait_for(lambda up: up.in_flight == 0, seconds=2)
    assert len(upstream.requests) == 1, "no other key is tried"
    assert send(call_of(catalog)).failure is None


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_abort_ends_a_connect_and_a_handshake_too(catalog: SimpleNamespace, scheme: str) -> None:
    with port_that_does_not_answer() if scheme == "http" else port_without_a_handshake() as port:
        point_host_at(catalog, f"{scheme}://127.0.0.1:{port}")
        call = call_of(catalog)
        cutter = Aborter(call.abort_handle, reason="worker_stopped", when=lambda: threading.Event().wait(0.3))
        outcome = send(call)

    assert time.monotonic() - cutter.at < FREE_SECONDS
    assert outcome.failure is not None
    assert outcome.failure.code == "worker_lost"
    assert "worker lost" in outcome.failure.message
    assert not outcome.sent


def test_an_abort_ends_the_wait_between_two_connects(catalog: SimpleNamespace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    point_host_at(catalog, f"http://127.0.0.1:{port}")
    call = call_of(catalog)
    Aborter(call.abort_handle, reason="timeout", when=lambda: threading.Event().wait(0.05))
    began = time.monotonic()
    outcome = send(call)

    assert time.monotonic() - began < FREE_SECONDS
    assert outcome.failure is not None
    assert outcome.failure.code == "timeout"


def test_a_call_that_was_aborted_before_sends_nothing(upstream: Upstream, catalog: SimpleNamespace) -> None:
    assert send(call_of(catalog)).failure is None
    call = call_of(catalog)
    call.abort_handle.abort("cancelled")
    call.abort_handle.abort("timeout")
    outcome = send(call)

    assert outcome.failure is not None
    assert outcome.failure.code == "cancelled", "the first reason stays"
    assert not outcome.sent
    assert len(upstream.requests) == 1


def test_an_upstream_that_does_not_read_holds_no_call_beyond_its_deadline(catalog: SimpleNamespace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        point_host_at(catalog, f"http://127.0.0.1:{listener.getsockname()[1]}")
        body = b'{"model":"echo-1","text":"' + b"x" * 30_000_000 + b'"}'
        began = time.monotonic()
        outcome = send(call_of(catalog, body=body, seconds=0.8))

    assert time.monotonic() - began < FREE_SECONDS
    assert outcome.failure is not None
    assert outcome.failure.code == "timeout"
