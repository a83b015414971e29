"""Open a TCP connection that another thread can abort, to any address that the SSRF guard allows."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

from urllib3.util.wait import wait_for_write

from routing.transport.ssrf_guard import check_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from routing.transport.abort_handle import AbortHandle

    SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]

_SECONDS_BEFORE_NEXT_ADDRESS = 5.0
"""How long to wait for an address when the name has another one."""

_IN_PROGRESS = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)


class NameNotResolved(OSError):  # noqa: N818
    pass


def connect(
    address: tuple[str, int],
    *,
    abort_handle: AbortHandle,
    remaining: Callable[[], float],
    options: Sequence[tuple[int, int, int | bytes]],
) -> socket.socket:
    """Return a connected socket. Tries each address of the name, the last one until the deadline.

    Raises OSError, and LinkLocalDenied when any address of the name is link-local. The system's name resolution
    cannot be aborted; everything after it can.
    """
    addresses = _resolve(address)
    for number, (family, socket_address) in enumerate(addresses, start=1):
        is_last = number == len(addresses)
        try:
            return _connect_to(
                family,
                socket_address,
                abort_handle=abort_handle,
                options=options,
                seconds=remaining() if is_last else min(remaining(), _SECONDS_BEFORE_NEXT_ADDRESS),
            )
        except OSError:
            if is_last or abort_handle.abort_reason is not None:
                raise
    raise NameNotResolved("no address")


def _resolve(address: tuple[str, int]) -> list[tuple[socket.AddressFamily, SocketAddress]]:
    host, port = address
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise NameNotResolved("the name cannot be resolved") from error
    check_addresses(str(socket_address[0]) for *_, socket_address in found)
    return [(family, socket_address) for family, *_, socket_address in found]


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
    # An abort before the connect begins has nothing to shut down yet. So the connect begins without blocking, then
    # the abort is checked, and only then comes the wait, which a later abort ends.
    sock.setblocking(False)
    code = sock.connect_ex(address)
    _raise_if_aborted(abort_handle)
    if code not in _IN_PROGRESS:
        raise OSError(code, os.strerror(code))
    if code and not wait_for_write(sock, timeout=seconds):
        raise TimeoutError("the connection attempt timed out")
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))
    _raise_if_aborted(abort_handle)


def _raise_if_aborted(abort_handle: AbortHandle) -> None:
    if abort_handle.abort_reason is not None:
        raise ConnectionAbortedError("the call was aborted")
