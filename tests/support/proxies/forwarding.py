"""A second address of a server, of another family, that forwards to it."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def forward_ipv6_port(*, port: int) -> Iterator[int]:
    """Yield a port of [::1] that forwards to this port of 127.0.0.1."""
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6, backlog=128)
    with _forwarding(listener, port=port):
        yield listener.getsockname()[1]


@contextlib.contextmanager
def forward_unix_socket(path: Path, *, port: int) -> Iterator[None]:
    """Create a unix socket that forwards to this port of 127.0.0.1."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(128)
    with _forwarding(listener, port=port):
        yield


@contextlib.contextmanager
def _forwarding(listener: socket.socket, *, port: int) -> Iterator[None]:
    sockets = [listener]
    threads = [threading.Thread(target=_accept, args=(listener, port, sockets))]
    threads[0].start()
    try:
        yield
    finally:
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        threads[0].join()
        for sock in sockets:
            sock.close()


def _accept(listener: socket.socket, port: int, sockets: list[socket.socket]) -> None:
    relays: list[threading.Thread] = []
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            sockets.append(client)
            server = socket.create_connection(("127.0.0.1", port))
            sockets.append(server)
            for ends in ((client, server), (server, client)):
                relays.append(threading.Thread(target=_relay, args=ends))
                relays[-1].start()
    for relay in relays:
        relay.join()


def _relay(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while received := source.recv(65_536):
            target.sendall(received)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
