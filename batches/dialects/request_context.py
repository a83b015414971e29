"""What a request says beside its path and body, as far as dialects answer to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaybatch.http.query_params import QueryParams


@dataclass(frozen=True, slots=True)
class RequestContext:
    """`origin()`: where callers reach the service, without a slash at the end. It raises InvalidRequest."""

    parameters: QueryParams
    headers: Mapping[str, str] = field(repr=False)
    origin: Callable[[], str]
