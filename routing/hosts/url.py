"""The URL of a call: a host's base URL, the adapter's path, the upstream's name of the model, and the host's query.

No message repeats a URL or a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.adapters import Adapter

MODEL_PLACEHOLDER = "{model}"
MAX_BASE_URL_CHARACTERS = 500

_DOT_SEGMENTS = frozenset({".", ".."})
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def validate_base_url(text: str) -> str:
    """Validate a base URL and return it without trailing slashes. Raises ValueError with the form expected."""
    parts = _split(text)
    if len(text) > MAX_BASE_URL_CHARACTERS or not re.fullmatch(r"[\x21-\x7e]+", text):
        raise ValueError("expected a URL of at most 500 ASCII characters without blanks")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected a URL that starts with http:// or https:// and names a host")
    if "@" in parts.netloc:
        raise ValueError("expected a URL without credentials: a host key holds them")
    if "?" in text or "#" in text:
        raise ValueError("expected a URL without ? and #: query holds parameters")
    _check_path(parts)
    return text.rstrip("/")


def call_url(adapter: Adapter, *, base_url: str, upstream_name: str, query: Mapping[str, str]) -> str:
    """The URL of a call as it is sent. Raises ValueError for one that must not be sent."""
    url = _fill_model(adapter.path(validate_base_url(base_url)), upstream_name)
    return f"{url}?{urlencode(query, quote_via=quote, safe='')}" if query else url


def check_upstream_name(base_url: str, *, upstream_name: str) -> None:
    """Raise ValueError when calls for this name below this base URL must not be sent."""
    _fill_model(validate_base_url(base_url), upstream_name)


def _fill_model(url: str, upstream_name: str) -> str:
    """Put the upstream's name, percent-encoded whole, in the place of {model}.

    A name that would be a dot segment is rejected: servers and proxies resolve those.
    """
    if MODEL_PLACEHOLDER in url and upstream_name in _DOT_SEGMENTS:
        raise ValueError("the upstream's name of the model is . or .., which cannot stand for {model}")
    return url.replace(MODEL_PLACEHOLDER, quote(upstream_name, safe=""))


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise ValueError(
            "expected a URL like https://api.example.com, with a port from 0 to 65535 if any"
        ) from None
    return parts


def _check_path(parts: SplitResult) -> None:
    if "{" in parts.netloc or "}" in parts.netloc:
        raise ValueError("expected {model} in the path alone")
    if re.search(r"[{}]", parts.path.replace(MODEL_PLACEHOLDER, "")):
        raise ValueError("expected no braces in the path but those of {model}")
    if _BROKEN_ESCAPE.search(parts.path):
        raise ValueError("expected two hexadecimal digits behind each % in the path")
    # Libraries and servers resolve percent-encoded dots as well.
    if any(unquote(segment) in _DOT_SEGMENTS for segment in parts.path.split("/")):
        raise ValueError("expected a path without the segments . and ..")
