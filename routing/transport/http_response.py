"""Parse one response from a connection, and check whether the connection is in step after it.

`http.client` parses. What it lacks is added here: every interim response is skipped (it skips only 100), the header
section is limited in bytes, a connection that ends within it is an error, each read ends at the call's deadline, and
after the response the connection is checked for surplus bytes.
"""

from __future__ import annotations

import http.client
import io
import re
import ssl
from http.client import HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from typing import TYPE_CHECKING, Any

from routing.transport.connection_attempt import attempt_or_none, current_attempt

if TYPE_CHECKING:
    import socket

    from routing.transport.connection_attempt import ConnectionAttempt

MAX_HEADER_BYTES = 262_144
"""The limit for status line and headers together, interim responses included."""

_MAX_HEADER_LINES = 5_000
_MAX_LINE_BYTES = 65_536
_BUFFER_BYTES = 65_536

# http.client stops at 100 header lines, and has no other way to raise that before Python 3.15. Gateways that send
# debug headers send more.
http.client._MAXHEADERS = _MAX_HEADER_LINES  # type: ignore[attr-defined]


_STATUS = re.compile(rb"HTTP/\d\S*[ \t]+(\d{3})")
_END_OF_HEADERS = re.compile(rb"\n\r?\n")


class ResponseTooLarge(HTTPException):
    """The headers, or the whole response, exceed their limit."""


def find_final_status(received: bytes) -> int | None:
    """Find the final status in the first bytes of a response.

    0 when they are not HTTP, None when it has not come yet.
    """
    at = 0
    while at < len(received):
        found = _STATUS.match(received, at)
        if found is None:
            is_incomplete = b"\n" not in received[at : at + _MAX_LINE_BYTES] and b"HTTP/".startswith(
                received[at : at + 5]
            )
            return None if is_incomplete else 0
        if int(found[1]) >= 200:
            return int(found[1])
        end = _END_OF_HEADERS.search(received, at)
        at = end.end() if end else len(received)
    return None


def is_early_rejection(status: int | None) -> bool:
    """Whether an upstream may send this status before it has read the request."""
    return status is not None and status >= 300


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket until the attempt's deadline, which a slow trickle of bytes does not extend.

    What was received while the request was being written comes first. `bytes_left`: how much may still be read, None
    for any number. `has_ended`: the upstream closed the connection.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, attempt: ConnectionAttempt) -> None:
        self.bytes_left: int | None = None
        self.has_ended = False
        self._raw = raw
        self._sock = sock
        self._attempt = attempt
        self._is_blocking = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.bytes_left is not None and self.bytes_left <= 0:
            self._attempt.is_too_large = True
            raise ResponseTooLarge
        count = self._read_received(buffer) if self._attempt.received else self._read_socket(buffer)
        if self.bytes_left is not None:
            self.bytes_left -= count or 0
        return count

    def _read_received(self, buffer: Any) -> int:
        count = min(len(buffer), len(self._attempt.received))
        buffer[:count] = self._attempt.received[:count]
        self._attempt.received = self._attempt.received[count:]
        return count

    def _read_socket(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._attempt.remaining() if self._is_blocking else 0)
        count = self._raw.readinto(buffer)
        self.has_ended = self.has_ended or count == 0
        return count

    def stop_waiting(self) -> None:
        """Read only what is there already from now on."""
        self._is_blocking = False

    def close(self) -> None:
        self._raw.close()
        super().close()


class UpstreamHttpResponse(HTTPResponse):
    """Records in the attempt the status, whether the response is finished, and whether surplus bytes followed it."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._reader = _DeadlineReader(self.fp.detach(), sock, current_attempt())
        self.fp: Any = io.BufferedReader(self._reader, _BUFFER_BYTES)
        self._had_interim = False

    def begin(self, *args: Any, **kwargs: Any) -> None:
        """Read status line and headers. Raises RemoteDisconnected when the connection ends within them."""
        self._reader.bytes_left = MAX_HEADER_BYTES
        try:
            super().begin(*args, **kwargs)
        except HTTPException:
            self._record_status()
            raise
        if self._reader.has_ended:  # http.client takes the end of the connection for the end of the headers
            raise RemoteDisconnected("the connection ended within the headers")
        self._reader.bytes_left = current_attempt().max_bytes or None
        self._record_status()

    def _read_status(self) -> tuple[str, int, str]:
        """Read the final status line, skipping interim responses. https://www.rfc-editor.org/rfc/rfc9110#section-15.2"""
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if status >= 200:
                return version, status, reason
            self._had_interim = True
            while self.fp.readline(_MAX_LINE_BYTES).strip(b"\r\n"):
                pass

    def _safe_read(self, amt: int) -> bytes:
        """Read a chunk. For a negative size, http.client would read everything that comes."""
        if amt < 0:
            raise IncompleteRead(b"")
        return super()._safe_read(amt)  # type: ignore[misc,no-any-return]

    def _record_status(self) -> None:
        """Record the status once a status line was parsed."""
        if isinstance(self.status, int):
            current_attempt().status = self.status

    def _close_conn(self) -> None:
        """Check the end of the response. http.client calls this once the body is read, and when it is given up."""
        attempt = attempt_or_none()
        if attempt is not None and self.headers is not None and not self.will_close:
            self._check_surplus(attempt)
        super()._close_conn()  # type: ignore[misc]

    def _check_surplus(self, attempt: ConnectionAttempt) -> None:
        self._reader.stop_waiting()
        try:
            surplus = self.fp.peek(1)
        except ssl.SSLWantReadError:
            surplus = b""
        except (OSError, ValueError, HTTPException):
            return
        # None: the body came in chunks. If they were cut short, urllib3 closes the connection besides.
        is_complete = self.length in (None, 0)
        attempt.has_surplus = is_complete and bool(surplus)
        attempt.is_finished = is_complete and self._has_unambiguous_end()

    def _has_unambiguous_end(self) -> bool:
        """Whether every server and proxy on the way finds the same end of the body by the headers."""
        lengths = self.headers.get_all("content-length", [])
        codings = self.headers.get_all("transfer-encoding", [])
        has_one_length = not codings and len(lengths) == 1 and lengths[0].strip().isdecimal()
        return (
            (has_one_length or (self.chunked and len(codings) == 1 and not lengths))
            and self.version == 11
            and self.status not in (204, 205, 304)
            and not self._had_interim
            and not self.headers.defects
            and not self.headers.get_payload()
        )
