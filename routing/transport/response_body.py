"""Read the body of an upstream's response, within the call's deadline and a number of bytes."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from urllib3.exceptions import DecodeError, HTTPError

from routing.transport.request_id import upstream_request_id
from routing.transport.retry_after import retry_after_seconds

if TYPE_CHECKING:
    from routing.transport.connection_attempt import ConnectionAttempt

MAX_ERROR_BYTES = 4096
"""How much of an error body is read."""

SUPPORTED_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
HTTP_ERRORS = (OSError, ValueError, HTTPError, HTTPException)
"""What requests, urllib3, http.client and the sockets raise."""

_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class UpstreamResponse:
    """`body` is complete when the status is 2xx and `read_error` empty; else its first 4 KiB, or as much as came.

    `read_error`: in a few words, why the response cannot be read. `connection_lost`: whether because the connection
    was lost. `status`: 0 when no status line came. `request_id`: see `upstream_request_id`.
    """

    status: int
    body: bytes = field(default=b"", repr=False)
    retry_after_seconds: float | None = None
    read_error: str = ""
    connection_lost: bool = False
    request_id: str = ""


class ResponseReader:
    """Reads the body after the status line and headers, which urllib3 has read (`raw`)."""

    def __init__(self, raw: Any, *, attempt: ConnectionAttempt, max_bytes: int) -> None:
        self._raw = raw
        self._attempt = attempt
        self._max_bytes = max_bytes
        self._status = int(raw.status)
        self._buffer = io.BytesIO()
        encoding = str(raw.headers.get("content-encoding", ""))
        self._can_decode = all(part.strip().lower() in SUPPORTED_ENCODINGS for part in encoding.split(","))

    def read(self) -> UpstreamResponse:
        """Raises Interrupted; every other problem becomes the response's `read_error`."""
        if not 200 <= self._status < 300:
            return self._read_error_response()
        if not self._can_decode:
            return self._read_beginning(
                limit=MAX_ERROR_BYTES, read_error="a content encoding that was not asked for"
            )
        if str(self._raw.headers.get("content-type", "")).lower().startswith("text/event-stream"):
            return self._read_beginning(limit=1, read_error="an event stream")
        if self._attempt.is_early:
            return self._read_beginning(
                limit=1, read_error="it came before the request was written out", connection_lost=True
            )
        too_large = f"larger than {self._max_bytes} bytes"
        if (self._raw.length_remaining or 0) > self._max_bytes:
            return self._read_beginning(limit=MAX_ERROR_BYTES, read_error=too_large)
        return self._read_whole(too_large)

    def _read_error_response(self) -> UpstreamResponse:
        response = self._read_beginning(limit=MAX_ERROR_BYTES, read_error="")
        if self._attempt.is_early and self._attempt.is_reused:
            # It may answer an earlier request on this connection: its body is not shown to another caller.
            return replace(response, body=b"")
        return response

    def _read_whole(self, too_large: str) -> UpstreamResponse:
        try:
            if self._stream(limit=self._max_bytes + 1) > self._max_bytes:
                return self._partial(too_large)
        except DecodeError:
            return self._partial("its content encoding is broken")
        except HTTP_ERRORS:
            self._attempt.raise_if_interrupted()
            if self._attempt.is_too_large:
                return self._partial(too_large)
            return self._partial("cut short", connection_lost=True)
        if self._raw.length_remaining is None and not self._raw.chunked:
            # Only the end of the connection ends this body: an abort of ours looks the same.
            self._attempt.raise_if_interrupted()
        return UpstreamResponse(
            status=self._status,
            body=self._buffer.getvalue(),
            request_id=self._request_id(),
        )

    def _read_beginning(
        self, *, limit: int, read_error: str, connection_lost: bool = False
    ) -> UpstreamResponse:
        """Read the first `limit` bytes, as far as they come: the rest is of no interest."""
        try:
            self._stream(limit=limit)
        except HTTP_ERRORS:
            self._attempt.raise_if_interrupted()
        return self._partial(read_error, connection_lost=connection_lost)

    def _stream(self, *, limit: int) -> int:
        """Decode until the end or until `limit` bytes are there; close the connection when more would come."""
        for chunk in self._raw.stream(min(limit, _CHUNK_BYTES), decode_content=self._can_decode):
            if self._buffer.write(chunk) and self._buffer.tell() >= limit:
                self._raw.close()
                break
        return self._buffer.tell()

    def _partial(self, read_error: str, *, connection_lost: bool = False) -> UpstreamResponse:
        headers = self._raw.headers
        return UpstreamResponse(
            status=self._status,
            body=self._buffer.getvalue()[:MAX_ERROR_BYTES],
            retry_after_seconds=retry_after_seconds(headers.get("retry-after"), date=headers.get("date")),
            read_error=read_error,
            connection_lost=connection_lost,
            request_id=self._request_id(),
        )

    def _request_id(self) -> str:
        """Empty for a response that may answer an earlier request on this connection."""
        if self._attempt.is_early and self._attempt.is_reused:
            return ""
        return upstream_request_id(self._raw.headers)
