"""Send one HTTP request to an upstream and read its response, within a deadline and a number of bytes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from requests import PreparedRequest
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ProxyError, SSLError
from requests.utils import get_environ_proxies

from routing.transport.connection_pool import get_transport
from routing.transport.http_response import MAX_HEADER_BYTES
from routing.transport.response_body import HTTP_ERRORS, ResponseReader, UpstreamResponse
from routing.transport.ssrf_guard import has_link_local_host

if TYPE_CHECKING:
    from routing.transport.connection_attempt import ConnectionAttempt

_PREPARED_PER_THREAD = 64
# In chunks of one byte each, a body travels as six times its size.
_FRAMING_FACTOR = 8


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A POST. `headers` hold the host key's secret, and are the same for every item of that key.

    A later header replaces an earlier one of the same name.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    idempotency_key: str


class NotConnected(Exception):  # noqa: N818
    """No connection could be made, and nothing was sent. The message says why, and names no address."""


def post(
    request: UpstreamRequest, *, attempt: ConnectionAttempt, max_bytes: int, trust_env_proxies: bool
) -> UpstreamResponse:
    """Send the request once. Raises NotConnected and Interrupted; other problems become the `read_error`.

    `attempt.is_sent` says whether anything was sent.
    """
    attempt.raise_if_interrupted()
    attempt.max_bytes = max_bytes * _FRAMING_FACTOR + MAX_HEADER_BYTES
    with attempt:
        try:
            proxies = _proxies_for(request.url) if trust_env_proxies else None
            raw = _send(request, attempt=attempt, proxies=proxies)
            return ResponseReader(raw, attempt=attempt, max_bytes=max_bytes).read()
        except HTTP_ERRORS as error:
            # Not chained: what the libraries raise may hold headers.
            attempt.raise_if_interrupted()
            if not attempt.is_connected:
                raise NotConnected(attempt.connect_error or _describe_connect_error(error)) from None
            if attempt.status:
                return UpstreamResponse(status=attempt.status, read_error="its headers cannot be read")
            return UpstreamResponse(
                status=0, read_error="the connection was lost before an answer", connection_lost=True
            )


def _send(request: UpstreamRequest, *, attempt: ConnectionAttempt, proxies: dict[str, str] | None) -> Any:
    """Return urllib3's response once its headers are read."""
    prepared = _prepare(request)
    try:
        # stream=True: else requests would read the whole body, of any size, before it could be limited.
        return get_transport().send(prepared, stream=True, timeout=attempt.remaining(), proxies=proxies).raw
    finally:
        # The prepared request is kept for the next call; this one's prompt must not be.
        prepared.body = None


class _ThreadState(threading.local):
    def __init__(self) -> None:
        self.prepared: dict[tuple[str, tuple[tuple[str, str], ...]], PreparedRequest] = {}


_thread = _ThreadState()


def _prepare(request: UpstreamRequest) -> PreparedRequest:
    """Prepare the request; what is the same for every item of a host key is prepared once a thread.

    Preparing takes as long as all the rest of a call.
    """
    key = (request.url, request.headers)
    prepared = _thread.prepared.get(key)
    if prepared is None:
        if len(_thread.prepared) >= _PREPARED_PER_THREAD:
            _thread.prepared.clear()
        prepared = PreparedRequest()
        prepared.prepare(method="POST", url=request.url, headers=dict(request.headers))
        # requests decodes %2E in a URL to a dot, and dots are steps along the path.
        prepared.url = request.url
        # A plain dict, which urllib3 copies at once: the names are unique by now.
        prepared.headers = dict(prepared.headers)  # type: ignore[assignment]
        _thread.prepared[key] = prepared
    prepared.body = request.body
    prepared.headers["Content-Length"] = str(len(request.body))
    prepared.headers["Idempotency-Key"] = request.idempotency_key
    return prepared


def _proxies_for(url: str) -> dict[str, str]:
    """The environment's proxies; none for a link-local address, so that connecting to it is denied.

    A host's name is resolved by the proxy.
    """
    return {} if has_link_local_host(url) else get_environ_proxies(url)


def _describe_connect_error(error: Exception) -> str:
    if isinstance(error, SSLError):
        return "the TLS handshake failed or the certificate is not trusted"
    if isinstance(error, ProxyError):
        return "the proxy did not connect"
    if isinstance(error, RequestsConnectionError):
        return "the connection broke while it was being made"
    return "the base URL cannot be used"
