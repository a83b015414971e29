"""What dialects need to know of a request, beside its path and body."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaybatch.http.query_params import QueryParams


@dataclass(frozen=True, slots=True)
class RequestContext:
    """`origin()`: the URL at which callers reach the service, without a slash at the end.

    It raises InvalidRequest when the request's host name is not allowed.
    """

    parameters: QueryParams
    headers: Mapping[str, str] = field(repr=False)
    origin: Callable[[], str]
