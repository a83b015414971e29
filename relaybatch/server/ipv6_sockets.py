"""gunicorn's listening sockets for IPv6, next to those for IPv4."""

from __future__ import annotations

import socket
from typing import Any

from gunicorn import sock as gunicorn_sockets


class IPv6OnlySocket(gunicorn_sockets.TCP6Socket):  # type: ignore[misc]
    """A socket that accepts IPv6 only if the IPv4 address is bound too, whatever the system's default is.

    The port would be in use otherwise. And the addresses of IPv4 clients stay as they are: gunicorn's
    `forwarded_allow_ips` would not recognize a proxy's address in IPv6 notation.
    """

    def bind(self, sock: Any) -> None:
        if ("0.0.0.0", self.cfg_addr[1]) in self.conf.address:  # noqa: S104 -- compared, not bound
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        super().bind(sock)


def use_ipv6_only_sockets() -> None:
    gunicorn_sockets.TCP6Socket = IPv6OnlySocket
