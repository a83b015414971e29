"""The web server's bind addresses: IPv4 and IPv6, or the one of them that the machine has."""

from __future__ import annotations

import socket

ALL_INTERFACES = (("0.0.0.0", socket.AF_INET), ("::", socket.AF_INET6))  # noqa: S104 -- a server listens on all interfaces
LOOPBACK = (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))


def usable_binds(candidates: tuple[tuple[str, socket.AddressFamily], ...], *, port: int) -> list[str]:
    """gunicorn's `bind` for the usable addresses. All of them if none is usable, so that gunicorn reports why."""
    usable = [(host, family) for host, family in candidates if _can_bind(host, family)] or candidates
    return [f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}" for host, family in usable]


def port_error(port: int) -> str:
    """The reason why the port cannot be used on the loopback addresses now; empty if it can."""
    for host, family in LOOPBACK:
        if _can_bind(host, family):
            try:
                _bind(host, family, port=port)
            except OSError as error:
                return error.strerror or type(error).__name__
    return ""


def _can_bind(host: str, family: socket.AddressFamily) -> bool:
    try:
        _bind(host, family, port=0)
    except OSError:
        return False
    return True


def _bind(host: str, family: socket.AddressFamily, *, port: int) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
