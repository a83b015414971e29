"""The headers of a call: ours, those of the host, the caller's that travel on, and the one that authenticates.

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
"""What a host's `auth` says in one word; anything else is the name of the header that holds the secret."""

MAX_HEADER_CHARACTERS = 8192

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")
_CREDENTIAL_NAME = re.compile(r"cookie|key|token|secret|passw|auth|credential", re.IGNORECASE)
# They are about the connection, which is ours: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
_CONNECTION_HEADERS = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
_REQUEST_HEADERS = frozenset({"host", "content-length", "idempotency-key", "expect"})
_RESERVED_HEADERS = _REQUEST_HEADERS | {name.lower() for name in FIXED_HEADERS} - {"user-agent"}


def validate_header_name(name: str) -> str:
    """Of a host's own header. Raises ValueError."""
    lower = name.lower()
    if not _NAME.fullmatch(name):
        raise ValueError("expected the name of a header: 1-200 letters, digits and signs as -")
    if lower in _CONNECTION_HEADERS or lower.startswith("proxy-"):
        raise ValueError("expected another header: this one is about the connection")
    if lower in _RESERVED_HEADERS:
        raise ValueError("expected another header: this one is set for each request")
    return name


def validate_auth_header(name: str) -> str:
    """Of the header that holds a host key's secret. Raises ValueError."""
    lower = validate_header_name(name).lower()
    if lower in {"bearer", NO_AUTH}:
        raise ValueError(f"expected the name of a header, or auth: {lower} without header")
    if lower == "user-agent" or lower.startswith("anthropic-"):
        raise ValueError("expected another header: this one says something else to the upstream")
    return name


def validate_header_value(value: str) -> str:
    """Raises ValueError: a line end would begin another header, and other control characters have no place in one."""
    if len(value) > MAX_HEADER_CHARACTERS or not _VALUE.fullmatch(value):
        raise ValueError(
            "expected a header's value: 1-8192 ASCII characters in one line, without blanks at the ends"
        )
    return value


def is_credential_header(name: str) -> bool:
    """By its name, as a header's often does: its text is then kept like a secret."""
    return bool(_CREDENTIAL_NAME.search(name))


def auth_header_names(auth: str) -> frozenset[str]:
    """In lower case: those that no header of the host may have. `auth` empty: the adapters of its bindings decide."""
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
    """The caller's win over the host's, the host's over what the adapter says by itself; nothing over what
    authenticates. Names are the same in whatever case, so the later one takes the place of the earlier."""
    wanted = adapter.headers(passed_on=forwarded)
    ours = {name: value for name, value in wanted.items() if name not in forwarded}
    callers = {name: value for name, value in wanted.items() if name in forwarded}
    layers = (ours, dict(host_headers), callers, auth_headers(auth, secret=secret))
    return tuple({name.lower(): (name, value) for layer in layers for name, value in layer.items()}.values())
