"""The transport of `requests` to upstreams: each thread's own, over the idle connections of the whole process.

`requests` and `urllib3` do the HTTP. Connections are made in connection.py; what becomes of them between two requests
is decided in idle_connections.py.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import certifi
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.ssl_ import create_urllib3_context

from routing.transport.connection import PlainConnection, TlsConnection
from routing.transport.connection_attempt import attempt_or_none, current_attempt
from routing.transport.idle_connections import IDLE_CONNECTIONS, Destination

if TYPE_CHECKING:
    import ssl

_POOLS_PER_THREAD = 32


class _ThreadState(threading.local):
    transport: Transport | None = None


_thread = _ThreadState()


def get_transport() -> Transport:
    """This thread's transport. The connections belong to the process."""
    if _thread.transport is None:
        # One connection at a time: a thread makes one request at a time.
        _thread.transport = Transport(pool_connections=_POOLS_PER_THREAD, pool_maxsize=1)
    return _thread.transport


class _SharedPool(HTTPConnectionPool):
    """Takes its connections from the process's idle ones, and returns them there."""

    def _get_conn(self, timeout: float | None = None) -> Any:  # noqa: ARG002
        destination = Destination(self.scheme, self.host, self.port, str(self.proxy or ""))
        connection: Any = IDLE_CONNECTIONS.take(owner=current_attempt().owner, destination=destination)
        if connection is None:
            connection = self._new_conn()
            connection.destination = destination
        return connection

    def _put_conn(self, conn: Any) -> None:
        """Keep the connection or close it, once the response is read or given up.

        urllib3 calls this while the attempt is current.
        Bytes after the response's end make its upstream distrusted: no connection of it is kept.
        """
        attempt = attempt_or_none()
        if conn is None or attempt is None or conn.sock is None:
            return
        if attempt.has_surplus:
            IDLE_CONNECTIONS.distrust(conn.destination)
        if attempt.is_finished and not attempt.is_early:
            conn.is_used = True
            conn.release(attempt)
            IDLE_CONNECTIONS.keep(conn, owner=attempt.owner)
        else:
            conn.close()


class _PlainPool(_SharedPool):
    ConnectionCls = PlainConnection


class _TlsPool(_SharedPool, HTTPSConnectionPool):
    ConnectionCls = TlsConnection


class RawResponse(NamedTuple):
    """`raw`: urllib3's response, whose status line and headers are read."""

    raw: Any


class Transport(HTTPAdapter):
    """Verifies TLS against the certificates of certifi, the machine and the settings. Never repeats a request."""

    def __init__(self, **kwargs: Any) -> None:
        self._direct_pools: dict[str, Any] = {}
        super().__init__(**kwargs)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, ssl_context=tls_context())
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs, ssl_context=tls_context())
        manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
        return manager

    def get_connection_with_tls_context(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """The pool for the request, which requests would look up by all that a pool can be told."""
        if kwargs.get("proxies"):
            return super().get_connection_with_tls_context(request, *args, **kwargs)
        pool = self._direct_pools.get(request.url)
        if pool is None:
            if len(self._direct_pools) >= _POOLS_PER_THREAD:
                self._direct_pools.clear()
            pool = super().get_connection_with_tls_context(request, *args, **kwargs)
            self._direct_pools[request.url] = pool
        return pool

    def request_url(self, request: Any, proxies: Any) -> str:
        return super().request_url(request, proxies) if proxies else str(request.path_url)

    def build_response(self, _: Any, raw: Any) -> Any:
        """Nothing that requests would add is of use here: cookies, a history, an encoding."""
        return RawResponse(raw)

    def cert_verify(self, *_: Any, **__: Any) -> None:
        """Load nothing: the shared TLS context has what requests would load again for every connection."""


@functools.cache
def tls_context() -> ssl.SSLContext:
    context = create_urllib3_context()
    context.load_verify_locations(certifi.where())
    context.load_default_certs()  # of SSL_CERT_FILE and SSL_CERT_DIR, where they are set
    for file in settings.UPSTREAM_CERTIFICATES:
        context.load_verify_locations(file)
    return context
