"""A proxy in front of the test database that can hang or go down.

with DatabaseProxy() as proxy:      # processes use proxy.url
    proxy.stop_responding()         # accepts connections and forwards nothing, as a frozen server
    proxy.go_down()                 # closes all connections and rejects new ones, as a killed server
    proxy.forward()                 # forwards again, also what was held back
    proxy.forward_new_connections()  # existing connections stay silent for ever
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

from django.db import connection

from tests.support.servers.deployment import deployment_environment

STEP_BYTES = 1 << 16


class DatabaseProxy:
    """`accepted`: number of connections so far, of all processes. `held`: how often data was held back."""

    def __init__(self) -> None:
        owner = connection.settings_dict
        self._server = (owner["HOST"], int(owner["PORT"]))
        self._listener = self._listening(port=0)
        self._port = self._listener.getsockname()[1]
        self.url = deployment_environment()["DATABASE_URL"].replace(
            f"@{owner['HOST']}:{owner['PORT']}/", f"@127.0.0.1:{self._port}/"
        )
        self.accepted = 0
        self.held = 0
        self._gates: list[threading.Event] = []
        self._gate = self._open_gate()
        self._is_closed = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept, self._listener)
        return self

    def __exit__(self, *_: object) -> None:
        self.go_down()
        self._is_closed = True
        for gate in self._gates:
            gate.set()
        for thread in self._threads:
            thread.join()

    def stop_responding(self) -> None:
        self._gate.clear()

    def go_down(self) -> None:
        for sock in [self._listener, *(end for pair in self._pairs for end in pair)]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        self._pairs = []

    def forward(self) -> None:
        """Forward again, after `go_down` on the same port; data held back by `stop_responding` is forwarded now."""
        self._gate.set()
        if self._listener.fileno() < 0:
            self._listener = self._listening(port=self._port)
            self._start(self._accept, self._listener)

    def forward_new_connections(self) -> None:
        self._gate = self._open_gate()

    def _open_gate(self) -> threading.Event:
        gate = threading.Event()
        gate.set()
        self._gates.append(gate)
        return gate

    @staticmethod
    def _listening(*, port: int) -> socket.socket:
        return socket.create_server(("127.0.0.1", port), backlog=128)

    def _start(self, run: object, *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = listener.accept()[0]
                far = socket.create_connection(self._server)
                self.accepted += 1
                self._pairs.append((near, far))
                self._start(self._pump, near, far, self._gate)
                self._start(self._pump, far, near, self._gate)

    def _pump(self, source: socket.socket, sink: socket.socket, gate: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(STEP_BYTES):
                self.held += not gate.is_set()
                gate.wait()
                if self._is_closed:
                    return
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
