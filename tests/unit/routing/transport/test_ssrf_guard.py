"""The denied addresses. That no call reaches them is tested in tests/integration/upstream/test_send_connections.py."""

from __future__ import annotations

import pytest

from routing.transport.ssrf_guard import LinkLocalDenied, check_addresses, has_link_local_host, is_link_local

DENIED = [
    "169.254.0.1",
    "169.254.169.254",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "fd20:ce::254",
    "::ffff:169.254.169.254",
    "::169.254.169.254",
    "64:ff9b::169.254.169.254",
    "2002:a9fe:a9fe::1",
]
ALLOWED = ["127.0.0.1", "10.0.0.1", "203.0.113.7", "::1", "fd00::1", "2001:db8::1", "::ffff:10.0.0.1"]


@pytest.mark.parametrize("address", DENIED)
def test_link_local_and_metadata_addresses_are_denied_in_every_spelling(address: str) -> None:
    assert is_link_local(address)
    with pytest.raises(LinkLocalDenied):
        check_addresses(["203.0.113.7", address])


@pytest.mark.parametrize("address", ALLOWED)
def test_every_other_address_is_allowed(address: str) -> None:
    assert not is_link_local(address)
    check_addresses([address])


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://169.254.169.254/latest", True),
        ("http://[fe80::1]:8080/", True),
        ("https://[::ffff:169.254.169.254]/", True),
        ("http://127.0.0.1:1/", False),
        ("https://api.example.com/v1", False),
        ("http://[broken", False),
    ],
)
def test_a_url_is_checked_by_its_address_and_names_are_not_resolved(url: str, expected: bool) -> None:
    assert has_link_local_host(url) is expected
