"""gunicorn's own responses and log lines: errors as JSON, nothing of the request repeated, timeouts for its sockets.

gunicorn answers requests that it rejects before Django sees them with `gunicorn.util.write_error`, as HTML that repeats
the invalid header. There is no setting for another format.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any

from gunicorn import util

from relaybatch.ids import uuid7

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

logger = logging.getLogger(__name__)

# gunicorn answers an unknown transfer coding with 501, but it is the client's error.
STATUS_OVERRIDES = {501: (400, "Bad Request")}
# A client that neither sends nor receives for so long is disconnected, which frees its thread.
SOCKET_TIMEOUT_SECONDS = 30
_INVALID_REQUEST = re.compile(r"Invalid request from ip=\S*(?=: )")


class RedactRequest(logging.Filter):
    """Log filter: remove the invalid header, and the query string of a failed request, from gunicorn's lines."""

    def filter(self, record: logging.LogRecord) -> bool:
        if refused := _INVALID_REQUEST.match(str(record.msg)):
            record.msg = f"{refused[0]}: {type(sys.exception()).__name__}"
        elif isinstance(record.args, tuple) and str(record.msg).startswith("Error handling request"):
            record.args = tuple(str(part).partition("?")[0] for part in record.args)
        return True


def gunicorn_logging(django_logging: Mapping[str, Any]) -> dict[str, Any]:
    """gunicorn's `logconfig_dict`: use our handlers in all its processes. The level is gunicorn's `loglevel`."""
    ours = {"filters": ["redact_request"], "propagate": True}
    return {
        **django_logging,
        "filters": {"redact_request": {"()": RedactRequest}},
        "loggers": {**django_logging["loggers"], "gunicorn.error": ours},
    }


def use_json_errors() -> None:
    """Make gunicorn answer the requests that it rejects itself in JSON."""
    util.write_error = _write_error


def set_socket_timeouts(listeners: Iterable[Any]) -> None:
    """Set send and receive timeouts on the listening sockets; accepted connections inherit them."""
    seconds = struct.pack("ll", SOCKET_TIMEOUT_SECONDS, 0)
    for listener in listeners:
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, seconds)
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)


def _write_error(sock: socket.socket, status_int: int, reason: str, mesg: str) -> None:  # noqa: ARG001
    status, phrase = STATUS_OVERRIDES.get(status_int, (status_int, reason))
    error = {
        "message": f"The HTTP request itself was refused: {phrase}.",
        "type": "server_error" if status >= 500 else "invalid_request_error",
        "param": None,
        "code": "internal_error" if status >= 500 else "bad_request",
    }
    identifier = f"req_{uuid7().hex}"
    # The path is unknown here: Anthropic's envelope around OpenAI's fields, which both kinds of clients can read.
    body = json.dumps({"type": "error", "error": error, "request_id": identifier}).encode()
    logger.info("request rejected by web server", extra={"request_id": identifier, "status": status})
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nrequest-id: {identifier}\r\nx-request-id: {identifier}\r\n\r\n"
    )
    util.write_nonblock(sock, head.encode("latin-1") + body)
