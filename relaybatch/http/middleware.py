"""Middleware of every request: request id, access log, HEAD, draining of unread bodies, optional trailing slash."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse

from relaybatch import log_format
from relaybatch.db.connection import release_connection
from relaybatch.http.asgi_limits import stream_parts
from relaybatch.http.body.body_limits import max_body_bytes
from relaybatch.http.body.request_body import DRAIN_SECONDS, RequestBody
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    Handler = Callable[[HttpRequest], HttpResponseBase]

access = logging.getLogger("relaybatch.access")

# The admin's pages and redirects need their trailing slash.
SLASH_REQUIRED_PREFIXES = ("/admin", "/static")


def request_id(get_response: Handler) -> Handler:
    """Give each request an id: in the response's headers and in every log line written while it is served."""

    def with_request_id(request: HttpRequest) -> HttpResponseBase:
        identifier = f"req_{uuid7().hex}"
        token = log_format.request_id.set(identifier)
        started = time.monotonic()
        try:
            response = get_response(request)
            response["request-id"] = response["x-request-id"] = identifier
            _log_access(request, response, milliseconds=(time.monotonic() - started) * 1000)
        finally:
            log_format.request_id.reset(token)
        if isinstance(response, StreamingHttpResponse) and not response.is_async:
            parts = _stream_with_request_id(identifier, iter(response))
            response.streaming_content = (
                stream_parts(parts, request) if isinstance(request, ASGIRequest) else parts
            )
        return response

    return with_request_id


def _log_access(request: HttpRequest, response: HttpResponseBase, *, milliseconds: float) -> None:
    """Write the access line. Query string, headers and body are left out: they may hold secrets or prompts."""
    access.info(
        "request served",
        extra={
            "method": request.method,
            "path": quote(request.path),
            "status": response.status_code,
            "ms": round(milliseconds),
        },
    )


def _stream_with_request_id(identifier: str, parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the parts of a streamed body, which is built after the middleware has returned, under the request's id.

    The database connection is released between parts, so that a slow client does not hold one.
    """
    # Set for one part at a time: a stream that its reader abandons would leave its id to the thread's next lines.
    while (part := _next_part(identifier, parts)) is not None:
        release_connection()
        yield part


def _next_part(identifier: str, parts: Iterator[bytes]) -> bytes | None:
    token = log_format.request_id.set(identifier)
    try:
        return next(parts, None)
    finally:
        log_format.request_id.reset(token)


def drain_unread_body(get_response: Handler) -> Handler:
    """Read the rest of the body, after an error or where a route takes none.

    A client that is still sending would see a broken pipe otherwise, or lose the connection for its next request.
    """

    def with_body_drained(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        RequestBody.of(request).drain(limit_bytes=2 * max_body_bytes(), seconds=DRAIN_SECONDS)
        return response

    return with_body_drained


def headers_only(get_response: Handler) -> Handler:
    """Leave the body out of the answer to a HEAD request; `Content-Length` stays that of the GET (RFC 9110, 9.3.2)."""

    def without_body(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.method != "HEAD":
            return response
        if isinstance(response, StreamingHttpResponse):
            response.streaming_content = iter(())
        elif isinstance(response, HttpResponse):
            response["Content-Length"] = str(len(response.content))
            response.content = b""
        return response

    return without_body


def optional_slash(get_response: Handler) -> Handler:
    """Serve `/v1/batches/` as `/v1/batches`, on every route but the admin's and static files."""

    def without_slash(request: HttpRequest) -> HttpResponseBase:
        if request.path_info.endswith("/") and not request.path_info.startswith(SLASH_REQUIRED_PREFIXES):
            request.path_info = request.path_info[:-1] or "/"
        return get_response(request)

    return without_slash
