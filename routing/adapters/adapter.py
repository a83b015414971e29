"""The type of an adapter, and the parts that adapters share. Nothing in this package knows Django.

An adapter is a value: four functions, the meters that it can report, and the fields of a real response. To add a
vendor, add one file with one such value, and its line in `routing/adapters/__init__.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from routing.calls.json_members import replace_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from routing.calls.call import Tokens

MAX_COUNT = 2**63 - 1
"""The largest bigint. A larger count cannot be real, and is treated as unknown."""


class Body(Protocol):
    def __call__(self, body: bytes, *, model: str, upstream_name: str) -> bytes: ...


class Headers(Protocol):
    def __call__(self, *, forwarded: Mapping[str, str]) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Adapter:
    """One vendor's wire shape.

    `path`: turns the host's base URL into the URL of a call. `headers`: the headers that the vendor needs besides the
    fixed ones. `body`: turns the caller's bytes into the upstream's. `usage`: turns the response's `usage` value,
    whatever it is, into tokens, or None when they are unknown; it never raises. `meters`: everything that `usage` can
    count, wholes and parts; a price list that lacks one of the wholes leaves calls unpriced.

    `answer_fields`: a response with an `error` and none of these fields is an error, whatever its status.
    `auth`: how a host key's secret is sent when the host does not say so: `bearer`, or the name of a header.
    """

    name: str
    path: Callable[[str], str]
    headers: Headers
    body: Body
    usage: Callable[[Any], Tokens | None]
    meters: frozenset[str]
    answer_fields: frozenset[str]
    auth: str = "bearer"


def join_path(path: str) -> Callable[[str], str]:
    """Join the path to a base URL: the whole to one without a path, to another only what follows `/v1`."""
    rest = path.removeprefix("/v1")

    def url(base_url: str) -> str:
        base = base_url.rstrip("/")
        own = _path_of(base)
        if own.endswith(rest):
            return base
        return base + (rest if own else path)

    return url


def join_full_path(path: str) -> Callable[[str], str]:
    """Join the whole path to any base URL; one that ends in `/v1` does not get a second `/v1`."""

    def url(base_url: str) -> str:
        base = base_url.rstrip("/")
        own = _path_of(base)
        if own.endswith(path):
            return base
        return base + (path.removeprefix("/v1") if own.endswith("/v1") else path)

    return url


def _path_of(base_url: str) -> str:
    _, slash, path = base_url.partition("://")[2].partition("/")
    return slash + path


def no_headers(*, forwarded: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG001 -- forwards none
    return {}


def rename_model(body: bytes, *, model: str, upstream_name: str) -> bytes:
    """Keep the body byte for byte, except for the model's name when the upstream has another one."""
    return body if model == upstream_name else replace_model(body, upstream_name)


def as_mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_count(value: Any) -> int | None:
    """The value if it can be a number of tokens; None for everything else that JSON can hold."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
        return value
    return None


def as_part(value: Any, *, of: int) -> int:
    """The value as a part of the count `of`, at most the whole. Vendors leave it out or write null: 0."""
    return min(as_count(value) or 0, of)


def if_countable(tokens: Tokens) -> Tokens | None:
    """The tokens; None when their sum, which is stored as well, is larger than a bigint."""
    total = tokens.input + tokens.cache_read + tokens.cache_write + tokens.output
    return tokens if total <= MAX_COUNT else None
