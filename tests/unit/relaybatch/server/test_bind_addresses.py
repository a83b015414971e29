"""The web server's bind addresses are those that the machine has."""

from __future__ import annotations

import socket

from relaybatch.server.bind_addresses import LOOPBACK, port_error, usable_binds

# Documentation addresses (RFC 5737, RFC 3849), which no machine has.
NOWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))


def test_an_address_of_this_machine_is_usable_and_another_one_is_not() -> None:
    assert usable_binds((*NOWHERE, ("127.0.0.1", socket.AF_INET)), port=80) == ["127.0.0.1:80"]


def test_without_a_usable_address_all_are_kept_so_that_gunicorn_reports_why() -> None:
    assert usable_binds(NOWHERE, port=80) == ["192.0.2.1:80", "[2001:db8::1]:80"]


def test_a_port_in_use_is_an_error_and_a_free_one_is_none() -> None:
    with socket.create_server((LOOPBACK[0][0], 0)) as server:
        port = server.getsockname()[1]
        assert port_error(port) == "Address already in use"
    assert port_error(port) == ""
