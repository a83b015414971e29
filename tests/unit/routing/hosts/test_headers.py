"""The headers of a call: whose win, and what may be a header of a host's."""

from __future__ import annotations

import pytest

from routing.adapters import ADAPTERS
from routing.hosts.headers import (
    auth_header_names,
    build_headers,
    is_credential_header,
    validate_auth_header,
    validate_header_name,
    validate_header_value,
)


def headers_of(
    adapter: str = "openai",
    *,
    of_host: dict[str, str] | None = None,
    callers: dict[str, str] | None = None,
    auth: str = "bearer",
) -> dict[str, str]:
    found = build_headers(
        ADAPTERS[adapter],
        host_headers=tuple((of_host or {}).items()),
        forwarded=callers or {},
        auth=auth,
        secret="s",
    )
    assert len({name.lower() for name, _ in found}) == len(found)
    return dict(found)


@pytest.mark.parametrize(
    ("auth", "headers"),
    [
        ("bearer", {"Authorization": "Bearer s"}),
        ("x-api-key", {"x-api-key": "s"}),
        ("api-key", {"api-key": "s"}),
        ("Ocp-Subscription", {"Ocp-Subscription": "s"}),
        ("none", {}),
    ],
)
def test_the_secret_is_in_one_header_or_in_none(auth: str, headers: dict[str, str]) -> None:
    assert headers_of(auth=auth) == headers


@pytest.mark.parametrize(
    ("of_host", "callers", "version"),
    [
        ({}, {}, "2023-06-01"),
        ({"Anthropic-Version": "host"}, {}, "host"),
        ({"Anthropic-Version": "host"}, {"anthropic-version": "caller"}, "caller"),
        ({"Anthropic-Version": "host"}, {"anthropic-version": "2023-06-01"}, "2023-06-01"),
        ({"anthropic-beta": "x"}, {"anthropic-version": "caller"}, "caller"),
    ],
)
def test_the_callers_win_over_the_hosts_and_the_hosts_over_ours(
    of_host: dict[str, str], callers: dict[str, str], version: str
) -> None:
    found = headers_of("anthropic", of_host=of_host, callers=callers, auth="x-api-key")
    assert {name.lower(): value for name, value in found.items()}["anthropic-version"] == version


def test_nothing_of_the_callers_goes_to_another_shape() -> None:
    assert headers_of(callers={"anthropic-beta": "a"}, of_host={"X-Team": "search"}, auth="none") == {
        "X-Team": "search"
    }


def test_nothing_takes_the_place_of_what_authenticates() -> None:
    assert headers_of("anthropic", of_host={"X-API-KEY": "h"}, auth="x-api-key")["x-api-key"] == "s"


@pytest.mark.parametrize(
    "name", ["X-Team", "user-agent", "authorization", "cookie", "x!#$%&'*+.^_`|~", "a" * 200]
)
def test_a_host_may_have_headers_of_its_own(name: str) -> None:
    assert validate_header_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "HOST", "content-length", "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding"),
        *("Upgrade", "Proxy-Authorization", "proxy-connection", "proxy-x", "Content-Type", "accept"),
        *("Accept-Encoding", "Idempotency-Key", "Expect"),
        *("", "a b", "a:b", "a\r\nb", "a\n", "é", "a\0", "(a)", "a" * 201),
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        validate_header_name(name)


@pytest.mark.parametrize(
    "name", ["Host", "accept", "User-Agent", "anthropic-version", "Bearer", "none", "a b"]
)
def test_what_cannot_hold_a_host_key_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        validate_auth_header(name)


@pytest.mark.parametrize("value", ["a", "a b\tc", "a" * 8192, "!~"])
def test_a_value_is_one_line_of_ascii(value: str) -> None:
    assert validate_header_value(value) == value


@pytest.mark.parametrize("value", ["", " a", "a ", "a\n", "a\r\nx: y", "a\0", "é", "a\x7fb", "a" * 8193])
def test_another_value_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(ValueError, match="expected a header's value") as refused:
        validate_header_value(value)
    assert "x: y" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("Authorization", True),
        ("Cookie", True),
        ("X-Api-Key", True),
        ("x-access-token", True),
        ("X-Client-Secret", True),
        ("x-password", True),
        ("CF-Access-Client-Id", False),
        ("X-Team", False),
        ("anthropic-beta", False),
        ("User-Agent", False),
    ],
)
def test_names_of_credentials_are_known(name: str, holds: bool) -> None:
    assert is_credential_header(name) is holds


@pytest.mark.parametrize(
    ("auth", "names"),
    [
        ("", {"authorization", "x-api-key"}),
        ("bearer", {"authorization"}),
        ("X-Key", {"x-key"}),
        ("none", set()),
    ],
)
def test_the_header_that_authenticates_is_no_hosts(auth: str, names: set[str]) -> None:
    assert auth_header_names(auth) == names
