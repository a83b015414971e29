"""One error for every bad item of a submission."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from relaybatch.http.errors import ApiError, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_NAMED_ITEMS = 100
MISSING = "is missing"


def raise_item_errors(
    problems: Iterable[tuple[str, str]], *, error: type[ApiError] = InvalidRequest, code: str | None = None
) -> None:
    """Raise `error` if there is any `(param, problem)`: it names the first hundred and counts the others."""
    found = iter(problems)
    named = list(itertools.islice(found, MAX_NAMED_ITEMS))
    if not named:
        return
    more = sum(1 for _ in found)
    if code is None and all(problem.startswith(MISSING) for _, problem in named):
        code = "missing_field"
    text = "; ".join(f"{param}: {problem}" for param, problem in named)
    raise error(f"{text}; and {more} more." if more else f"{text}.", code=code, param=named[0][0])
