"""Making a TCP connection that another thread can interrupt, to any address but a link-local one."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from typing import TYPE_CHECKING

from urllib3.util.wait import wait_for_write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from routing.upstream.call import AbortHandle

    SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]

_SECONDS_BEFORE_NEXT_ADDRESS = 5.0
"""How long an address may keep silent when the name has another one."""

_METADATA_ADDRESSES = {
    ipaddress.IPv6Address("fd00:ec2::254"),  # docs.aws.amazon.com: the instance metadata service
    ipaddress.IPv6Address("fd20:ce::254"),  # cloud.google.com: the metadata server
}
_IPV4_COMPATIBLE = ipaddress.IPv6Network("::/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_IN_PROGRESS = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)


class LinkLocalDenied(OSError):  # noqa: N818
    """Cloud metadata lives at link-local addresses, and hands out the machine's own credentials."""


class NameNotResolved(OSError):  # noqa: N818
    pass


def connect(
    address: tuple[str, int],
    *,
    abort_handle: AbortHandle,
    remaining: Callable[[], float],
    options: Sequence[tuple[int, int, int | bytes]],
) -> socket.socket:
    """A connected socket. Each address of the name is tried, the last one until the deadline.

    Raises OSError; LinkLocalRefused when any address of the name is link-local. The system's resolver cannot be
    interrupted; everything after it can.
    """
    addresses = _resolve(address)
    for number, (family, place) in enumerate(addresses, start=1):
        last = number == len(addresses)
        try:
            return _connect_to(
                family,
                place,
                abort_handle=abort_handle,
                options=options,
                seconds=remaining() if last else min(remaining(), _SECONDS_BEFORE_NEXT_ADDRESS),
            )
        except OSError:
            if last or abort_handle.abort_reason is not None:
                raise
    raise NameNotResolved("no address")


def is_link_local(address: str) -> bool:
    """Or where a cloud's metadata lives else. Also in IPv6's ways of writing an IPv4 address."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found in _METADATA_ADDRESSES:
            return True
        found = _embedded_ipv4(found) or found
    return found.is_link_local


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Mapped, compatible (RFC 4291), behind NAT64 (RFC 6052) or 6to4 (RFC 3056)."""
    if address in _IPV4_COMPATIBLE or address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _resolve(address: tuple[str, int]) -> list[tuple[socket.AddressFamily, SocketAddress]]:
    host, port = address
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise NameNotResolved("the name cannot be resolved") from error
    if any(is_link_local(str(place[0])) for *_, place in found):
        raise LinkLocalDenied("link-local and metadata addresses are refused")
    return [(family, place) for family, *_, place in found]


def _connect_to(
    family: socket.AddressFamily,
    address: SocketAddress,
    *,
    abort_handle: AbortHandle,
    seconds: float,
    options: Sequence[tuple[int, int, int | bytes]],
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        for option in options:
            sock.setsockopt(*option)
        abort_handle.attach(sock)
        _finish_connecting(sock, address, abort_handle=abort_handle, seconds=seconds)
    except BaseException:
        abort_handle.detach(sock)
        sock.close()
        raise
    abort_handle.detach(sock)
    return sock


def _finish_connecting(
    sock: socket.socket, address: SocketAddress, *, abort_handle: AbortHandle, seconds: float
) -> None:
    # A cut before the connect begins finds nothing to shut. So the connect begins without waiting, then comes the
    # look whether there was a cut, and only then the wait, which a later cut ends.
    sock.setblocking(False)
    code = sock.connect_ex(address)
    if abort_handle.abort_reason is not None:
        raise ConnectionAbortedError("the call was cut")
    if code not in _IN_PROGRESS:
        raise OSError(code, os.strerror(code))
    if code and not wait_for_write(sock, timeout=seconds):
        raise TimeoutError("the connection attempt timed out")
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))
    if abort_handle.abort_reason is not None:
        raise ConnectionAbortedError("the call was cut")
