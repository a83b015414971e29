"""A TCP proxy in front of a server. Subclasses change what is forwarded."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class TcpProxy:
    """Forwards everything. `port`: its own."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for sock in [self._listener, *self._sockets]:
            _shut_down(sock)
            sock.close()
        for thread in self._threads:
            thread.join()

    def from_client(self, client: socket.socket, server: socket.socket) -> None:
        """Forward until the client disconnects. May raise OSError."""
        self._relay(client, server)

    def from_server(self, server: socket.socket, client: socket.socket) -> None:
        self._relay(server, client)

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        while received := source.recv(65_536):
            sink.sendall(received)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                self._start(self._run, self.from_client, client, server)
                self._start(self._run, self.from_server, server, client)

    def _start(self, run: object, *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _run(self, pump: object, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            pump(source, sink)  # type: ignore[operator]
        _shut_down(sink)


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
