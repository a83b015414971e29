"""A proxy in front of a web process that receives a response and closes the connection instead of forwarding it.

with CuttingProxy(web.port) as proxy:      # clients use proxy.origin
    proxy.cut(2)                           # the next two responses are dropped
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.proxies.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    import socket


class CuttingProxy(TcpProxy):
    """`cuts`: how many responses are still to be dropped."""

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
