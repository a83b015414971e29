"""What an adapter is, and the parts that adapters share. Nothing here or beside it knows Django.

An adapter is a value of four functions, the meters it can report, and the fields that a real answer has. To add a
vendor: one file with one such value, and its line in `routing/adapters/__init__.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from routing.upstream.json_members import replace_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from routing.upstream.call import Tokens

MAX_COUNT = 2**63 - 1
"""What a bigint holds. A count beyond it is nobody's real usage, and is not believed."""


class Body(Protocol):
    def __call__(self, body: bytes, *, model: str, upstream_name: str) -> bytes: ...


class Headers(Protocol):
    def __call__(self, *, passed_on: Mapping[str, str]) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Adapter:
    """`path`: the host's base URL to the URL of a call. `headers`: what the vendor wants beside the fixed ones.
    `body`: the caller's bytes to the upstream's. `usage`: the answer's `usage` value, however odd, to tokens, or
    None where they cannot be told; it never raises. `meters`: all that `usage` can count, wholes and parts; a price
    list without one of the wholes leaves calls unpriced.

    `answer_fields`: an answer with an `error` and none of these is an error, whatever its status says.
    `auth`: how a host key's secret is sent where the host does not say so: `bearer`, or the name of a header.
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
    """The whole path below a base URL that has none; a base URL with a path is given only what follows `/v1`."""
    rest = path.removeprefix("/v1")

    def url(base_url: str) -> str:
        base = base_url.rstrip("/")
        own = _path_of(base)
        if own.endswith(rest):
            return base
        return base + (rest if own else path)

    return url


def join_full_path(path: str) -> Callable[[str], str]:
    """The whole path below any base URL; one that ends in `/v1` is not given a second."""

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


def no_headers(*, passed_on: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG001 -- no header travels on
    return {}


def rename_model(body: bytes, *, model: str, upstream_name: str) -> bytes:
    """Byte for byte, but for the model's name where the upstream has another one."""
    return body if model == upstream_name else replace_model(body, upstream_name)


def as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_count(value: Any) -> int | None:
    """A whole number that can be one of tokens; None for everything else that JSON can hold."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
        return value
    return None


def as_part(value: Any, *, of: int) -> int:
    """A detail of a count. Vendors leave it out or write null: 0. It is never more than its whole."""
    return min(as_count(value) or 0, of)


def if_countable(tokens: Tokens) -> Tokens | None:
    """None where no bigint holds the sum: what is counted is also added up."""
    total = tokens.input + tokens.cache_read + tokens.cache_write + tokens.output
    return tokens if total <= MAX_COUNT else None
