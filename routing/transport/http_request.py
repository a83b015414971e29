"""One HTTP request to an upstream and its whole answer, within a deadline and a number of bytes."""

from __future__ import annotations

import io
import ipaddress
import threading
import time
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from requests import PreparedRequest
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ProxyError, SSLError
from requests.utils import get_environ_proxies
from urllib3.exceptions import DecodeError, HTTPError

from routing.transport.connection_pool import get_transport
from routing.transport.http_response import MAX_HEADER_BYTES
from routing.transport.tcp_connect import is_link_local
from routing.upstream.failures import UPSTREAM_ERROR_BYTES
from routing.upstream.headers import FIXED_HEADERS
from routing.upstream.retry_after import retry_after_seconds

if TYPE_CHECKING:
    from routing.transport.connection_attempt import ConnectionAttempt

SUPPORTED_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})

_CHUNK_BYTES = 65_536
_PREPARED_PER_THREAD = 64
# In chunks of one byte each, an answer is six times its size.
_FRAMING_FACTOR = 8
_HTTP_ERRORS = (OSError, ValueError, HTTPError, HTTPException)


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """`headers` authenticate; they stay the same from one item to the next."""

    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    idempotency_key: str


@dataclass(frozen=True, slots=True)
class UpstreamResponse:
    """`body` is whole when `flaw` is empty and the status 2xx; else its first 4 KiB, as much as came.

    `flaw`: in a few words, why the answer cannot be read. `lost`: because the connection broke.
    """

    status: int
    body: bytes = field(default=b"", repr=False)
    retry_after_seconds: float | None = None
    read_error: str = ""
    connection_lost: bool = False


class NotConnected(Exception):  # noqa: N818
    """Nothing was sent. The words say why, and name no address."""


class Interrupted(Exception):  # noqa: N818
    """`reason`: `timeout`, or what the line was cut with."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def post(
    request: UpstreamRequest, *, attempt: ConnectionAttempt, max_bytes: int, trust_env_proxies: bool
) -> UpstreamResponse:
    """Raises NotConnected and Interrupted; everything else that can go wrong is told by the Reply.

    The trip says whether anything was sent.
    """
    raise_if_interrupted(attempt)
    attempt.max_bytes = max_bytes * _FRAMING_FACTOR + MAX_HEADER_BYTES
    with attempt:
        try:
            raw = _send(
                request, attempt=attempt, proxies=_proxies_for(request.url) if trust_env_proxies else None
            )
            return _ResponseReader(raw, attempt=attempt, max_bytes=max_bytes).read()
        except _HTTP_ERRORS as error:
            # Not chained: what the libraries raise may hold headers.
            raise_if_interrupted(attempt)
            if not attempt.is_connected:
                raise NotConnected(attempt.connect_error or _describe_connect_error(error)) from None
            if attempt.status:
                return UpstreamResponse(status=attempt.status, read_error="its headers cannot be read")
            return UpstreamResponse(
                status=0, read_error="the connection was lost before an answer", connection_lost=True
            )


def _send(request: UpstreamRequest, *, attempt: ConnectionAttempt, proxies: dict[str, str] | None) -> Any:
    """The answer as urllib3 has it after the headers."""
    prepared = _prepare(request)
    try:
        return get_transport().send(prepared, stream=True, timeout=attempt.remaining(), proxies=proxies).raw
    finally:
        # What is prepared is kept for the next call; this one's prompt is not.
        prepared.body = None


def raise_if_interrupted(attempt: ConnectionAttempt) -> None:
    if attempt.abort_handle.abort_reason is not None:
        raise Interrupted(attempt.abort_handle.abort_reason)
    if time.monotonic() >= attempt.deadline:
        raise Interrupted("timeout")


class _ResponseReader:
    """Reads the body behind a status line and headers."""

    def __init__(self, raw: Any, *, attempt: ConnectionAttempt, max_bytes: int) -> None:
        self._raw = raw
        self._attempt = attempt
        self._max_bytes = max_bytes
        self._status = int(raw.status)
        self._buffer = io.BytesIO()
        encoding = str(raw.headers.get("content-encoding", ""))
        self._decode = all(part.strip().lower() in SUPPORTED_ENCODINGS for part in encoding.split(","))

    def read(self) -> UpstreamResponse:
        if not 200 <= self._status < 300:
            reply = self._read_beginning(limit=UPSTREAM_ERROR_BYTES, read_error="")
            # An early one may be the answer to another request: its words are kept from whoever is not asked.
            return replace(reply, body=b"") if self._attempt.is_early and self._attempt.is_reused else reply
        if not self._decode:
            return self._read_beginning(
                limit=UPSTREAM_ERROR_BYTES, read_error="a content encoding that was not asked for"
            )
        if str(self._raw.headers.get("content-type", "")).lower().startswith("text/event-stream"):
            return self._read_beginning(limit=1, read_error="an event stream")
        if self._attempt.is_early:
            return self._read_beginning(
                limit=1, read_error="it came before the request was written out", connection_lost=True
            )
        too_large = f"larger than {self._max_bytes} bytes"
        if (self._raw.length_remaining or 0) > self._max_bytes:
            return self._read_beginning(limit=UPSTREAM_ERROR_BYTES, read_error=too_large)
        return self._read_whole(too_large)

    def _read_whole(self, too_large: str) -> UpstreamResponse:
        try:
            if self._stream(limit=self._max_bytes + 1) > self._max_bytes:
                return self._unusable(too_large)
        except DecodeError:
            return self._unusable("its content encoding is broken")
        except _HTTP_ERRORS:
            raise_if_interrupted(self._attempt)
            if self._attempt.is_too_large:
                return self._unusable(too_large)
            return self._unusable("cut short", connection_lost=True)
        if self._raw.length_remaining is None and not self._raw.chunked:
            # Only the end of the connection ends this body: a cut of ours looks the same.
            raise_if_interrupted(self._attempt)
        return UpstreamResponse(status=self._status, body=self._buffer.getvalue())

    def _read_beginning(
        self, *, limit: int, read_error: str, connection_lost: bool = False
    ) -> UpstreamResponse:
        """An answer of which only the beginning is of interest, and only if it is there."""
        try:
            self._stream(limit=limit)
        except _HTTP_ERRORS:
            raise_if_interrupted(self._attempt)
        return self._unusable(read_error, connection_lost=connection_lost)

    def _stream(self, *, limit: int) -> int:
        """Decodes until the end or until `limit` bytes are there; hangs up when more would come."""
        for chunk in self._raw.stream(min(limit, _CHUNK_BYTES), decode_content=self._decode):
            if self._buffer.write(chunk) and self._buffer.tell() >= limit:
                self._raw.close()
                break
        return self._buffer.tell()

    def _unusable(self, read_error: str, *, connection_lost: bool = False) -> UpstreamResponse:
        headers = self._raw.headers
        return UpstreamResponse(
            status=self._status,
            body=self._buffer.getvalue()[:UPSTREAM_ERROR_BYTES],
            retry_after_seconds=retry_after_seconds(headers.get("retry-after"), date=headers.get("date")),
            read_error=read_error,
            connection_lost=connection_lost,
        )


class _ThreadState(threading.local):
    def __init__(self) -> None:
        self.prepared: dict[tuple[str, tuple[tuple[str, str], ...]], PreparedRequest] = {}


_thread = _ThreadState()


def _prepare(request: UpstreamRequest) -> PreparedRequest:
    """Preparing takes as long as the rest of a call does, and gives the same for each item of a host key."""
    key = (request.url, request.headers)
    found = _thread.prepared.get(key)
    if found is None:
        if len(_thread.prepared) >= _PREPARED_PER_THREAD:
            _thread.prepared.clear()
        found = PreparedRequest()
        found.prepare(method="POST", url=request.url, headers={**FIXED_HEADERS, **dict(request.headers)})
        # Preparing rewrites what is percent-encoded: %2E becomes a dot, and dots a step along the path.
        found.url = request.url
        _thread.prepared[key] = found
    found.body = request.body
    found.headers["Content-Length"] = str(len(request.body))
    found.headers["Idempotency-Key"] = request.idempotency_key
    return found


def _proxies_for(url: str) -> dict[str, str]:
    """The environment's, but none for a link-local address, so that dialling refuses it."""
    try:
        if is_link_local(urlsplit(url).hostname or ""):
            return {}
    except ipaddress.AddressValueError:
        return {}
    except ValueError:
        pass  # A name. The proxy resolves it.
    return get_environ_proxies(url)


def _describe_connect_error(error: Exception) -> str:
    if isinstance(error, SSLError):
        return "the TLS handshake failed or the certificate is not trusted"
    if isinstance(error, ProxyError):
        return "the proxy did not connect"
    if isinstance(error, RequestsConnectionError):
        return "the connection broke while it was being made"
    return "the base URL cannot be used"
