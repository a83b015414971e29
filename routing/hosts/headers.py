"""The headers of a call: the adapter's, the host's, those forwarded from the caller, and the one that authenticates.

What may be a header follows https://www.rfc-editor.org/rfc/rfc9110#section-5. No message repeats a value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from routing.adapters import ADAPTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.adapters import Adapter

    Headers = tuple[tuple[str, str], ...]

FIXED_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "relaybatch",
}
NO_AUTH = "none"
AUTH_SCHEMES = ("bearer", "x-api-key", "api-key", NO_AUTH)
"""The words for a host's `auth`; anything else is the name of the header that holds the secret."""

MAX_HEADER_CHARACTERS = 8192

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")
_CREDENTIAL_NAME = re.compile(r"cookie|key|token|secret|passw|auth|credential", re.IGNORECASE)
# Hop-by-hop headers, of the connection, which is adapters_own: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
_CONNECTION_HEADERS = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
_REQUEST_HEADERS = frozenset({"host", "content-length", "idempotency-key", "expect"})
_RESERVED_HEADERS = _REQUEST_HEADERS | {name.lower() for name in FIXED_HEADERS} - {"user-agent"}


def validate_header_name(name: str) -> str:
    """Validate the name of a host's own header. Raises ValueError."""
    lower = name.lower()
    if not _NAME.fullmatch(name):
        raise ValueError("expected the name of a header: 1-200 letters, digits and signs as -")
    if lower in _CONNECTION_HEADERS or lower.startswith("proxy-"):
        raise ValueError("expected another header: this one is about the connection")
    if lower in _RESERVED_HEADERS:
        raise ValueError("expected another header: this one is set for each request")
    return name


def validate_auth_header(name: str) -> str:
    """Validate the name of the header that holds a host key's secret. Raises ValueError."""
    lower = validate_header_name(name).lower()
    if lower in {"bearer", NO_AUTH}:
        raise ValueError(f"expected the name of a header, or auth: {lower} without header")
    if lower == "user-agent" or lower.startswith("anthropic-"):
        raise ValueError("expected another header: this one says something else to the upstream")
    return name


def validate_header_value(value: str) -> str:
    """Raises ValueError: a line end would begin another header, and other control characters are not allowed in one."""
    if len(value) > MAX_HEADER_CHARACTERS or not _VALUE.fullmatch(value):
        raise ValueError(
            "expected a header's value: 1-8192 ASCII characters in one line, without blanks at the ends"
        )
    return value


def is_credential_header(name: str) -> bool:
    """Whether the name suggests that the value is a credential: the value is then stored like a secret."""
    return bool(_CREDENTIAL_NAME.search(name))


def auth_header_names(auth: str) -> frozenset[str]:
    """The names, in lower case, that no header of a host with this `auth` may have.

    `auth` empty: the adapters of the bindings decide, so the names of all adapters are taken.
    """
    if auth:
        return frozenset(name.lower() for name in auth_headers(auth, secret=""))
    return frozenset().union(*(auth_header_names(adapter.auth) for adapter in ADAPTERS.values()))


def auth_headers(auth: str, *, secret: str) -> dict[str, str]:
    if auth == NO_AUTH:
        return {}
    return {"Authorization": f"Bearer {secret}"} if auth == "bearer" else {auth: secret}


def build_headers(
    adapter: Adapter, *, host_headers: Headers, forwarded: Mapping[str, str], auth: str, secret: str
) -> Headers:
    """Merge the headers: the caller's replace the host's, the host's the adapter's, and nothing replaces the one that
    authenticates. Names are compared without regard to case."""
    of_adapter = adapter.headers(forwarded=forwarded)
    adapters_own = {name: value for name, value in of_adapter.items() if name not in forwarded}
    callers = {name: value for name, value in of_adapter.items() if name in forwarded}
    layers = (adapters_own, dict(host_headers), callers, auth_headers(auth, secret=secret))
    return tuple({name.lower(): (name, value) for layer in layers for name, value in layer.items()}.values())
