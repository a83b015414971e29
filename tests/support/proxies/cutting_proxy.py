"""A proxy in front of a web process that receives a response and closes the connection instead of forwarding it.

with CuttingProxy(web.port) as proxy:      # clients use proxy.origin
    proxy.drop(2)                          # the next two responses are dropped
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.proxies.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    import socket


class CuttingProxy(TcpProxy):
    """`drops`: how many responses are still to be dropped."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port))
        self.origin = f"http://127.0.0.1:{self.port}"
        self.drops = 0

    def drop(self, responses: int) -> None:
        self.drops = responses

    def from_server(self, server: socket.socket, client: socket.socket) -> None:
        while received := server.recv(65_536):
            if self.drops > 0:
                self.drops -= 1
                return
            client.sendall(received)
