"""The guard against server-side request forgery: no connection goes to a link-local or cloud metadata address.

Whoever edits the catalog chooses the hosts. Cloud metadata lives at these addresses, and hands out the machine's own
credentials. Resolved names are checked in tcp_connect.py; for a proxy, which resolves by itself, the URL is checked.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

_METADATA_ADDRESSES = {
    ipaddress.IPv6Address("fd00:ec2::254"),  # docs.aws.amazon.com: the instance metadata service
    ipaddress.IPv6Address("fd20:ce::254"),  # cloud.google.com: the metadata server
}
_IPV4_COMPATIBLE = ipaddress.IPv6Network("::/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class LinkLocalDenied(OSError):  # noqa: N818
    """The name resolves to a link-local or metadata address."""


def check_addresses(addresses: Iterable[str]) -> None:
    """Raise LinkLocalDenied when any of the addresses is link-local, whatever the others are."""
    if any(is_link_local(address) for address in addresses):
        raise LinkLocalDenied("link-local and metadata addresses are refused")


def has_link_local_host(url: str) -> bool:
    """Whether the URL's host is written as a link-local address. A name is not resolved here."""
    try:
        return is_link_local(urlsplit(url).hostname or "")
    except ipaddress.AddressValueError:
        return True  # It looks like an address, but cannot be checked.
    except ValueError:
        return False


def is_link_local(address: str) -> bool:
    """Whether an IP address is link-local or a cloud's metadata address, also as an IPv4 address embedded in IPv6.

    Raises ValueError when it is not an IP address.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed in _METADATA_ADDRESSES:
            return True
        parsed = _embedded_ipv4(parsed) or parsed
    return parsed.is_link_local


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address in a mapped or compatible (RFC 4291), NAT64 (RFC 6052) or 6to4 (RFC 3056) address."""
    if address in _IPV4_COMPATIBLE or address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
