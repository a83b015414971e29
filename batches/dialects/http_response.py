"""Turn a dialect's response into Django's: whole or streamed, compressed when the client accepts gzip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.cache import patch_vary_headers

from relaybatch.http.streaming import accepts_gzip, compress, start_stream

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from batches.dialects.dialect_response import DialectResponse


def to_http_response(response: DialectResponse, request: HttpRequest) -> HttpResponseBase:
    """Build the response. Only streams are compressed: a whole body is small."""
    if isinstance(response.body, bytes):
        content_type = response.content_type if response.body else None
        whole = HttpResponse(response.body, status=response.status, content_type=content_type)
        if not response.body:
            del whole["Content-Type"]
        return whole
    is_compressed = accepts_gzip(request.headers.get("Accept-Encoding", ""))
    parts = start_stream(response.body)
    body = compress(parts) if is_compressed else parts
    streamed = StreamingHttpResponse(body, status=response.status, content_type=response.content_type)
    patch_vary_headers(streamed, ["Accept-Encoding"])
    if is_compressed:
        streamed["Content-Encoding"] = "gzip"
    return streamed
