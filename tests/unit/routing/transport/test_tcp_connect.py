from __future__ import annotations

import socket

import pytest

from routing.transport.abort_handle import AbortHandle
from routing.transport.ssrf_guard import LinkLocalDenied
from routing.transport.tcp_connect import NameNotResolved, connect


def connect_to(host: str, port: int, *, abort_handle: AbortHandle | None = None) -> socket.socket:
    return connect(
        (host, port),
        abort_handle=abort_handle or AbortHandle(),
        remaining=lambda: 5.0,
        options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
    )


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_it_returns_a_connected_socket_with_its_options() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        connect_to("127.0.0.1", listener.getsockname()[1]) as sock,
    ):
        assert sock.getpeername() == listener.getsockname()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_closed_port_is_an_error_in_words(port: int) -> None:
    with pytest.raises(ConnectionRefusedError, match="refused"):
        connect_to("127.0.0.1", port)


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(NameNotResolved, match="cannot be resolved"):
        connect_to("n" * 64, 80)  # longer than a label may be, so no resolver is asked


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]"])
def test_a_link_local_address_is_denied(host: str) -> None:
    with pytest.raises(LinkLocalDenied):
        connect_to(host, 80)


def test_an_aborted_call_does_not_connect() -> None:
    handle = AbortHandle()
    handle.abort("cancelled")
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        pytest.raises(ConnectionAbortedError, match="aborted"),
    ):
        connect_to("127.0.0.1", listener.getsockname()[1], abort_handle=handle)
