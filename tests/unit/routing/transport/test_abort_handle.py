from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from routing.transport.abort_handle import AbortHandle

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(5)
        yield one, other


def test_an_abort_ends_a_read_in_another_thread(pair: tuple[socket.socket, socket.socket]) -> None:
    handle = AbortHandle()
    handle.attach(pair[0])
    threading.Timer(0.05, handle.abort, ["cancelled"]).start()
    assert pair[0].recv(1) == b""
    assert handle.abort_reason == "cancelled"


def test_a_socket_that_is_attached_after_the_abort_is_shut_down(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    handle = AbortHandle()
    handle.abort("timeout")
    handle.attach(pair[0])
    assert pair[0].recv(1) == b""


def test_a_detached_socket_is_not_shut_down(pair: tuple[socket.socket, socket.socket]) -> None:
    handle = AbortHandle()
    handle.attach(pair[0])
    handle.detach()
    handle.abort("cancelled")
    pair[1].sendall(b"x")
    assert pair[0].recv(1) == b"x"


def test_only_the_attached_socket_is_detached(pair: tuple[socket.socket, socket.socket]) -> None:
    handle = AbortHandle()
    handle.attach(pair[0])
    handle.detach(pair[1])
    handle.abort("cancelled")
    assert pair[0].recv(1) == b""


def test_a_socket_that_is_closed_already_does_not_stop_the_abort(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    handle = AbortHandle()
    handle.attach(pair[0])
    pair[0].close()
    handle.abort("cancelled")
    assert handle.abort_reason == "cancelled"


def test_the_first_reason_is_kept() -> None:
    handle = AbortHandle()
    handle.abort("cancelled")
    handle.abort("timeout")
    assert handle.abort_reason == "cancelled"


def test_an_abort_ends_the_wait() -> None:
    handle = AbortHandle()
    threading.Timer(0.05, handle.abort, ["cancelled"]).start()
    started = time.monotonic()
    handle.wait(30)
    assert time.monotonic() - started < 10
