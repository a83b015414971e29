"""The part of a call that is the same for all calls of a binding: the URL, and what the host adds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from routing.adapters import ADAPTERS
from routing.hosts.headers import (
    AUTH_SCHEMES,
    auth_header_names,
    validate_auth_header,
    validate_header_name,
    validate_header_value,
)
from routing.hosts.url import call_url
from routing.secrets.encryption import SecretError
from routing.secrets.host_key_secret import host_header_value

if TYPE_CHECKING:
    from routing.hosts.headers import Headers
    from routing.models import Binding, HostHeader


class UncallableBinding(Exception):  # noqa: N818
    """The rows hold something that must not be sent, or lack something. The message names the host, and no value."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """`url`: complete. `auth`: how the host key's secret is sent, by the host or else by the adapter.

    `headers`: the host's own. `secrets`: the values of its secret headers, to be redacted in errors.
    """

    url: str
    auth: str
    headers: Headers = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def build_host_call(binding: Binding, *, upstream_name: str) -> HostCall:
    """Validate the rows and build the call. Raises UncallableBinding.

    Rows are checked again here, because they can be changed in ways that bypass the checks.
    """
    host: Any = binding.host
    adapter = ADAPTERS.get(binding.adapter)
    if adapter is None:
        raise UncallableBinding(f"host {host.name}: this release has no adapter {binding.adapter}")
    try:
        url = call_url(adapter, base_url=host.base_url, upstream_name=upstream_name, query=host.query)
        auth = _validate_auth(host.auth) or adapter.auth
        rows: list[HostHeader] = list(host.headers.all())
        headers = tuple((row.name, _validated_value(row, auth=auth)) for row in rows)
    except (ValueError, SecretError) as problem:
        raise UncallableBinding(f"host {host.name}: {problem}") from None
    secrets = tuple(value for row, (_, value) in zip(rows, headers, strict=True) if not row.text)
    return HostCall(url=url, auth=auth, headers=headers, secrets=secrets)


def _validate_auth(auth: str) -> str:
    return auth if not auth or auth in AUTH_SCHEMES else validate_auth_header(auth)


def _validated_value(header: HostHeader, *, auth: str) -> str:
    """Raises ValueError and SecretError."""
    name = validate_header_name(header.name)
    if name.lower() in auth_header_names(auth):
        raise ValueError(f"the header {name} authenticates, and is not the host's")
    try:
        return validate_header_value(host_header_value(header))
    except ValueError as problem:
        raise ValueError(f"the header {name}: {problem}") from None
