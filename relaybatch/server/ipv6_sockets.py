"""gunicorn's listening sockets on IPv6, beside those on IPv4."""

from __future__ import annotations

import socket
from typing import Any

from gunicorn import sock as gunicorn_sockets


class IPv6OnlySocket(gunicorn_sockets.TCP6Socket):  # type: ignore[misc]
    """Where both are bound, IPv6's takes IPv6 alone, whatever the machine's default is.

    The port would be in use otherwise. And IPv4's callers keep their addresses: as IPv6 writes them, gunicorn's
    `forwarded_allow_ips` would not know a proxy.
    """

    def bind(self, sock: Any) -> None:
        if ("0.0.0.0", self.cfg_addr[1]) in self.conf.address:  # noqa: S104 -- compared, not bound
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        super().bind(sock)


def use_ipv6_only_sockets() -> None:
    gunicorn_sockets.TCP6Socket = IPv6OnlySocket
