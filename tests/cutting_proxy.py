"""Stands before a web process, takes in what it answers, and hangs up in place of handing it on.

with CuttingProxy(web.port) as proxy:      # clients are told proxy.origin
    proxy.cut(2)                           # so many answers from now on never arrive
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class CuttingProxy:
    """`cuts`: how many answers it has still to cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.origin = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for sock in [self._listener, *self._sockets]:
            _hang_up(sock)
            sock.close()
        for thread in self._threads:
            thread.join()

    def cut(self, answers: int) -> None:
        self.cuts = answers

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                self._sockets += [client, server]
                self._start(self._relay, client, server)
                self._start(self._answer, server, client)

    def _start(self, run: object, *arguments: socket.socket) -> None:
        thread = threading.Thread(target=run, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while received := client.recv(65_536):
                server.sendall(received)
        _hang_up(server)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while received := server.recv(65_536):
                if self.cuts > 0:
                    self.cuts -= 1
                    break
                client.sendall(received)
        _hang_up(client)


def _hang_up(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
