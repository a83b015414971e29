"""Answers, interim ones and ends that come before a request is written out."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import termios
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from routing.transport import connection_pool, idle_connections
from routing.transport.abort_handle import AbortHandle
from routing.transport.http_response import find_final_status
from routing.transport.idle_connections import IDLE_CONNECTIONS
from routing.upstream.send import send
from tests.support.calls.upstream_calls import Aborter, call_of
from tests.support.rows.catalog import make_catalog
from tests.support.rows.gate_state import clear_gate
from tests.support.servers.certificates import self_signed, server_context
from tests.support.upstream.odd_responses import WELL, body_with, prompt_in, stolen
from tests.support.upstream.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import SimpleNamespace

    from routing.calls.call import Outcome

pytestmark = pytest.mark.django_db

LARGE = "x" * 8_000_000
SIZES = {"small": "small", "large": LARGE}
INTERIM = {status: b"HTTP/1.1 %d X\r\nA: b\r\n\r\n" % status for status in (100, 102, 103)}


@pytest.fixture(autouse=True)
def _connections_serve_again_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(idle_connections, "MIN_IDLE_SECONDS", 0.0)
    IDLE_CONNECTIONS.close_all()
    yield
    IDLE_CONNECTIONS.close_all()


@pytest.fixture(params=["http", "https"])
def upstream(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Upstream]:
    tls = None
    if request.param == "https":
        certificate = self_signed(tmp_path, address="127.0.0.1")
        connection_pool.tls_context().load_verify_locations(certificate)
        tls = server_context(certificate)
    with Upstream(tls=tls) as running:
        running.handler = lambda _: WELL
        yield running


@pytest.fixture(params=["new", "used"])
def catalog(request: pytest.FixtureRequest, upstream: Upstream) -> SimpleNamespace:
    """Its next call goes out on a connection of this kind."""
    catalog = make_catalog(upstream.url)
    if request.param == "used":
        assert said(send_words(catalog, "first")) == "first"
    return catalog


def send_words(catalog: SimpleNamespace, words: str, *, seconds: float = 20.0) -> Outcome:
    return send(call_of(catalog, body=body_with(words), seconds=seconds))


def said(outcome: Outcome) -> str:
    return prompt_in(outcome.body) if outcome.failure is None else outcome.failure.message


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("status", INTERIM)
def test_an_interim_answer_in_the_middle_of_a_request_is_read_over(
    upstream: Upstream, catalog: SimpleNamespace, status: int, size: str
) -> None:
    upstream.before_body = lambda sock: sock.sendall(INTERIM[status])

    assert said(send_words(catalog, SIZES[size])) == SIZES[size]
    upstream.before_body = None
    assert said(send_words(catalog, "third")) == "third"


def test_an_answer_in_the_middle_of_a_request_is_nobodys(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    upstream.before_body = lambda sock: sock.sendall(stolen())
    outcome = send_words(catalog, LARGE)

    assert outcome.failure is not None
    assert outcome.failure.code == "upstream_unreadable"
    assert "before the request was written out" in outcome.failure.message


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def wait_until_nothing_more_comes(sock: socket.socket) -> None:
    """The other side is held up in the middle of its writing then: what it wrote lies here, unread."""
    waiting, same = -1, 0
    while same < 5:
        time.sleep(0.01)
        now = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.FIONREAD, b"\0\0\0\0"))[0]
        same = same + 1 if now == waiting else 0
        waiting = now


@pytest.mark.parametrize(
    "end", [socket.socket.close, reset, lambda sock: socket.socket.shutdown(sock, socket.SHUT_RDWR)]
)
def test_an_answer_whose_upstream_then_hangs_up_on_the_request_is_nobodys(
    upstream: Upstream, catalog: SimpleNamespace, end: Callable[[socket.socket], object]
) -> None:
    """The writing breaks off, within a piece too, and the answer may still be read."""

    def answer_and_end(sock: socket.socket) -> None:
        wait_until_nothing_more_comes(sock)
        sock.sendall(stolen())
        end(sock)

    upstream.before_body = answer_and_end
    outcome = send_words(catalog, LARGE * 3)
    upstream.before_body = None

    assert outcome.failure is not None
    assert outcome.failure.code == "upstream_unreadable"
    clear_gate()
    assert said(send_words(catalog, "third")) == "third"


def test_interim_answers_without_end_in_the_middle_of_a_request_are_not_taken_in(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    """More than an answer's headers may be is no answer."""

    def flood(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.sendall(INTERIM[102] * 40_000)

    flooding: list[threading.Thread] = []

    def flood_meanwhile(sock: socket.socket) -> None:
        flooding.append(threading.Thread(target=flood, args=(sock,)))
        flooding[-1].start()

    upstream.before_body = flood_meanwhile
    outcome = send_words(catalog, LARGE)
    upstream.before_body = None
    upstream.hang_up()
    flooding[0].join(20)

    assert outcome.failure is not None
    assert outcome.failure.code == "upstream_unreadable"


def test_a_rejection_in_the_middle_of_a_request_is_its_response(
    upstream: Upstream, catalog: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    """On a reused connection the body and the request id are dropped: they might be about another request."""
    used = bool(upstream.requests)
    upstream.before_body = lambda sock: sock.sendall(
        b"HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nX-Request-Id: r\r\nContent-Length: 4\r\n\r\n{  }"
    )
    outcome = send_words(catalog, LARGE)
    upstream.before_body = None

    assert outcome.failure is not None
    assert outcome.failure.message == "batch item: upstream status 429"
    assert outcome.failure.retry_after_seconds == 3.0
    assert outcome.failure.upstream_error == (b"" if used else b"{  }")
    assert outcome.request_id == ("" if used else "r")
    assert "out of step" not in caplog.text
    assert said(send_words(catalog, "third")) == "third"


def test_a_rejection_is_read_also_when_the_upstream_reads_no_further(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    over = threading.Event()

    def refuse(sock: socket.socket) -> None:
        wait_until_nothing_more_comes(sock)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
        over.wait(20)

    upstream.before_body = refuse
    outcome = send_words(catalog, LARGE * 3)
    over.set()

    assert outcome.failure is not None
    assert outcome.failure.message == "batch item: upstream status 413"


def hang_up(sock: socket.socket) -> None:
    """Says that no more comes, and goes on reading."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_WR)


def test_an_upstream_that_hangs_up_in_the_middle_of_a_request_is_not_out_of_step(
    upstream: Upstream, catalog: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.before_body = hang_up
    outcome = send_words(catalog, LARGE)

    assert outcome.failure is not None
    assert outcome.failure.message.endswith("the connection was lost before an answer")
    assert "out of step" not in caplog.text


def test_a_call_aborted_in_the_middle_of_its_request_says_nothing_of_its_upstream(
    upstream: Upstream, catalog: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    began, over = threading.Event(), threading.Event()

    def hold(_: socket.socket) -> None:
        began.set()
        over.wait(20)

    upstream.before_body = hold
    call = call_of(catalog, body=body_with(LARGE * 3))
    cutter = Aborter(call.abort_handle, reason="cancelled", when=lambda: began.wait(20))
    outcome = send(call)
    over.set()
    cutter.join()

    assert outcome.failure is not None
    assert outcome.failure.code == "cancelled"
    assert "out of step" not in caplog.text


class NoticingAbortHandle(AbortHandle):
    """Calls `notice` when a call has its connection, and has written nothing yet."""

    def __init__(self, notice: Callable[[], object]) -> None:
        super().__init__()
        self._notice = notice

    def attach(self, sock: socket.socket) -> None:
        super().attach(sock)
        self._notice()


@pytest.mark.parametrize("end", [stolen(), b""], ids=["an answer", "the end of the connection"])
def test_what_comes_on_a_used_connection_before_anything_is_written_costs_the_call_nothing(
    caplog: pytest.LogCaptureFixture, end: bytes
) -> None:
    """A new connection is made."""
    with Upstream() as upstream:
        upstream.handler = lambda _: WELL
        catalog = make_catalog(upstream.url)
        assert said(send_words(catalog, "first")) == "first"
        call = call_of(catalog, body=body_with("second"))
        abort_handle = NoticingAbortHandle(lambda: end_first_connection(upstream, end))
        outcome = send(replace(call, abort_handle=abort_handle))

        assert said(outcome) == "second"
        assert (outcome.keys_tried, len(upstream.requests)) == (1, 2)
    warnings = [record.message for record in caplog.records]
    assert warnings == (["upstream connection out of step"] if end else [])


def end_first_connection(upstream: Upstream, end: bytes) -> None:
    """Only while the first one is the only one."""
    if upstream.connections == 1:
        upstream.write(end) if end else upstream.hang_up()


def test_a_reader_that_is_slow_does_not_stretch_the_deadline(upstream: Upstream) -> None:
    over = threading.Event()

    def read_slowly(sock: socket.socket) -> None:
        while not over.wait(0.2) and sock.recv(262_144):
            pass

    catalog = make_catalog(upstream.url)
    upstream.before_body = read_slowly
    began = time.monotonic()
    outcome = send_words(catalog, LARGE * 4, seconds=1.0)
    took = time.monotonic() - began
    over.set()

    assert outcome.failure is not None
    assert outcome.failure.code == "timeout"
    assert took < 1.0 + 2.0, "what is promised of a slot"


@pytest.mark.parametrize(
    ("arrived", "status"),
    [
        (b"", None),
        (b"HT", None),
        (b"HTTP/1.1 20", None),
        (b"HTTP/1.1 200", 200),
        (b"HTTP/1.1 200 OK\r\n", 200),
        (b"HTTP/1.1 413 Large\r\nA: b", 413),
        (b"HTTP/1.1 103 X\r\nA: b", None),
        (b"HTTP/1.1 103 X\r\n\r\n", None),
        (b"HTTP/1.1 103 X\r\n\r\nHTTP/1.1 102 Y\r\nA: b\r\n\r\nHTTP/1.1 401", 401),
        (b"HTTP/1.1 100 X\n\nHTTP/1.1 200", 200),
        (b"SSH-2.0\r\n", 0),
        (b"junk", 0),
        (b"\r\nHTTP/1.1 200 OK", 0),
    ],
)
def test_the_final_status_is_found_behind_interim_ones(arrived: bytes, status: int | None) -> None:
    assert find_final_status(arrived) == status
