"""Reading one answer off a connection, and telling whether the connection is in step behind it.

`http.client` parses. What it leaves out stands here: every interim answer is read over (it knows 100 alone), a header
section is bounded by its bytes, a cut within it is no answer, each read ends at the call's deadline, and at the end
comes a look whether anything lies behind the answer.
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
"""Of status line and headers together, interim answers included."""

_MAX_HEADER_LINES = 5_000
_MAX_LINE_BYTES = 65_536
_BUFFER_BYTES = 65_536

# The library stops at 100 header lines, and has no other way to say so before Python 3.15. Gateways that debug send
# more.
http.client._MAXHEADERS = _MAX_HEADER_LINES  # type: ignore[attr-defined]


_STATUS = re.compile(rb"HTTP/\d\S*[ \t]+(\d{3})")
_END_OF_HEADERS = re.compile(rb"\n\r?\n")


class ResponseTooLarge(HTTPException):
    """Of an answer's headers, or of all of it."""


def find_final_status(received: bytes) -> int | None:
    """The final status among the first bytes of an answer; 0 when they are none, None when it is not there yet."""
    at = 0
    while at < len(received):
        found = _STATUS.match(received, at)
        if found is None:
            is_cut = b"\n" not in received[at : at + _MAX_LINE_BYTES] and b"HTTP/".startswith(
                received[at : at + 5]
            )
            return None if is_cut else 0
        if int(found[1]) >= 200:
            return int(found[1])
        end = _END_OF_HEADERS.search(received, at)
        at = end.end() if end else len(received)
    return None


def is_early_rejection(status: int | None) -> bool:
    """What an upstream may rightly say before it has read the request."""
    return status is not None and status >= 300


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket until the deadline of the trip: a byte a second does not begin the time anew.

    What arrived while the request was written comes first. `bytes_left`: bounds what is read, unless it is None.
    `ended`: the upstream hung up.
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
        """From now on only what is there already is read."""
        self._is_blocking = False

    def close(self) -> None:
        self._raw.close()
        super().close()


class UpstreamHttpResponse(HTTPResponse):
    """Tells the trip its status, whether it is plainly finished, and whether there was something behind it."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._reader = _DeadlineReader(self.fp.detach(), sock, current_attempt())
        self.fp: Any = io.BufferedReader(self._reader, _BUFFER_BYTES)
        self._had_interim = False

    def begin(self, *args: Any, **kwargs: Any) -> None:
        """Raises RemoteDisconnected for an answer that breaks off before the end of its headers."""
        self._reader.bytes_left = MAX_HEADER_BYTES
        try:
            super().begin(*args, **kwargs)
        except HTTPException:
            self._record_status()
            raise
        if self._reader.has_ended:  # the library takes the end of the connection for that of the headers
            raise RemoteDisconnected("the connection ended within the headers")
        self._reader.bytes_left = current_attempt().max_bytes or None
        self._record_status()

    def _read_status(self) -> tuple[str, int, str]:
        """Of the final answer. https://www.rfc-editor.org/rfc/rfc9110#section-15.2"""
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if status >= 200:
                return version, status, reason
            self._had_interim = True
            while self.fp.readline(_MAX_LINE_BYTES).strip(b"\r\n"):
                pass

    def _safe_read(self, amt: int) -> bytes:
        """Of a chunk. The library reads all that comes for a size below zero."""
        if amt < 0:
            raise IncompleteRead(b"")
        return super()._safe_read(amt)  # type: ignore[misc,no-any-return]

    def _record_status(self) -> None:
        """A number as soon as there was a status line; a status line that is none is no answer."""
        if isinstance(self.status, int):
            current_attempt().status = self.status

    def _close_conn(self) -> None:
        """Called once the body is read, and whenever it is given up."""
        attempt = attempt_or_none()
        if attempt is not None and self.headers is not None and not self.will_close:
            self._check_surplus(attempt)
        super()._close_conn()  # type: ignore[misc]

    def _check_surplus(self, attempt: ConnectionAttempt) -> None:
        self._reader.stop_waiting()
        try:
            behind = self.fp.peek(1)
        except ssl.SSLWantReadError:
            behind = b""
        except (OSError, ValueError, HTTPException):
            return
        # None: it came in chunks. After a cut within them urllib3 closes the connection as well.
        whole = self.length in (None, 0)
        attempt.has_surplus = whole and bool(behind)
        attempt.is_finished = whole and self._has_unambiguous_end()

    def _has_unambiguous_end(self) -> bool:
        """Whether everybody on the way reads the same end out of the headers."""
        lengths = self.headers.get_all("content-length", [])
        codings = self.headers.get_all("transfer-encoding", [])
        one_length = not codings and len(lengths) == 1 and lengths[0].strip().isdecimal()
        return (
            (one_length or (self.chunked and len(codings) == 1 and not lengths))
            and self.version == 11
            and self.status not in (204, 205, 304)
            and not self._had_interim
            and not self.headers.defects
            and not self.headers.get_payload()
        )
