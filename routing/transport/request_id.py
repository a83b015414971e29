"""The upstream's own name for a call, from its answer's headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CHARACTERS = 200
# OpenAI and most others; Anthropic.
_HEADERS = ("x-request-id", "request-id")
_VISIBLE_ASCII = re.compile(rf"[!-~]{{1,{MAX_CHARACTERS}}}")


def upstream_request_id(headers: Mapping[str, str]) -> str:
    """The first of the two headers that holds an id: up to 200 visible ASCII characters. Empty when none does."""
    for name in _HEADERS:
        value = headers.get(name)
        if value is not None and _VISIBLE_ASCII.fullmatch(value := value.strip(" \t")):
            return value
    return ""
