"""Stands before a web process, takes in what it answers, and hangs up in place of handing it on.

with CuttingProxy(web.port) as proxy:      # clients are told proxy.origin
    proxy.cut(2)                           # so many answers from now on never arrive
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.proxies.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    import socket


class CuttingProxy(TcpProxy):
    """`cuts`: how many answers it has still to cut."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port))
        self.origin = f"http://127.0.0.1:{self.port}"
        self.cuts = 0

    def cut(self, answers: int) -> None:
        self.cuts = answers

    def from_server(self, server: socket.socket, client: socket.socket) -> None:
        while received := server.recv(65_536):
            if self.cuts > 0:
                self.cuts -= 1
                return
            client.sendall(received)
