"""What of a submission's own headers goes upstream with each of its items, where the shape is Anthropic's.

https://docs.claude.com/en/api/versioning, https://docs.claude.com/en/api/beta-headers
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

# And how long each may be: a list of betas grows.
PASSED_ON = {"anthropic-version": 100, "anthropic-beta": 2000}
_VISIBLE = re.compile(r"[\x20-\x7e]*")


def upstream_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Raises InvalidRequest that names the header at fault."""
    return {
        name: _checked(name, headers[name], most=most)
        for name, most in PASSED_ON.items()
        if headers.get(name)
    }


def _checked(name: str, value: str, *, most: int) -> str:
    if len(value) > most or not _VISIBLE.fullmatch(value):
        raise InvalidRequest(f"{name} must be at most {most} visible ASCII characters.", param=name)
    return value
