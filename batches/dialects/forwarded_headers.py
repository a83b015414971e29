"""The headers of a submission that are sent upstream with each of its items, where the shape is Anthropic's.

https://docs.claude.com/en/api/versioning, https://docs.claude.com/en/api/beta-headers
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

# With the longest value of each: a list of betas grows.
FORWARDED_HEADERS = {"anthropic-version": 100, "anthropic-beta": 2000}
_VISIBLE_ASCII = re.compile(r"[\x20-\x7e]*")


def upstream_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Pick the headers to forward. Raises InvalidRequest that names the header at fault."""
    return {
        name: _validate_header(name, headers[name], max_length=most)
        for name, most in FORWARDED_HEADERS.items()
        if headers.get(name)
    }


def _validate_header(name: str, value: str, *, max_length: int) -> str:
    if len(value) > max_length or not _VISIBLE_ASCII.fullmatch(value):
        raise InvalidRequest(f"{name} must be at most {max_length} visible ASCII characters.", param=name)
    return value
