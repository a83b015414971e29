"""Turn a dialect's response into Django's: whole or streamed, compressed when the client accepts gzip."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.cache import patch_vary_headers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from batches.dialects.dialect_response import DialectResponse

_GZIP = re.compile(r"(?:^|,)\s*(?:x-)?gzip\s*(?:;\s*q\s*=\s*(?P<weight>[0-9.]+)\s*)?(?=,|$)", re.IGNORECASE)
_COMPRESSION_LEVEL = 3


def to_http_response(response: DialectResponse, request: HttpRequest) -> HttpResponseBase:
    """Build the response. Only streams are compressed: a whole body is small."""
    if isinstance(response.body, bytes):
        content_type = response.content_type if response.body else None
        whole = HttpResponse(response.body, status=response.status, content_type=content_type)
        if not response.body:
            del whole["Content-Type"]
        return whole
    compress = accepts_gzip(request.headers.get("Accept-Encoding", ""))
    parts = _start_stream(response.body)
    body = _compress(parts) if compress else parts
    streamed = StreamingHttpResponse(body, status=response.status, content_type=response.content_type)
    patch_vary_headers(streamed, ["Accept-Encoding"])
    if compress:
        streamed["Content-Encoding"] = "gzip"
    return streamed


def accepts_gzip(accept_encoding: str) -> bool:
    found = _GZIP.search(accept_encoding)
    return found is not None and (found["weight"] or "1").strip("0.") != ""


def _start_stream(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Make the first part now, while an error in it can still become an error status."""
    first = next(parts, b"")
    return _prepend(first, parts)


def _prepend(first: bytes, parts: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from parts


def _compress(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Compress part by part, flushing after each, so that the first one is sent at once."""
    compressor = zlib.compressobj(level=_COMPRESSION_LEVEL, wbits=31)
    for part in parts:
        yield compressor.compress(part) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()
