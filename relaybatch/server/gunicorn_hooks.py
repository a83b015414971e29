"""What the web server itself refuses, before Django sees it: JSON here as well, and nothing of the request in it.

gunicorn writes its refusals with `gunicorn.util.write_error`, as HTML that repeats the header at fault; there is no
setting for another form.
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

# A transfer coding that nobody knows is the client's mistake, not the server's.
STATUS_OVERRIDES = {501: (400, "Bad Request")}
# A client that sends or takes nothing for so long gives its thread back.
SOCKET_TIMEOUT_SECONDS = 30
_INVALID_REQUEST = re.compile(r"Invalid request from ip=\S*(?=: )")


class RedactRequest(logging.Filter):
    """Its log lines repeat the header at fault, and the query string of a request that broke off."""

    def filter(self, record: logging.LogRecord) -> bool:
        if refused := _INVALID_REQUEST.match(str(record.msg)):
            record.msg = f"{refused[0]}: {type(sys.exception()).__name__}"
        elif isinstance(record.args, tuple) and str(record.msg).startswith("Error handling request"):
            record.args = tuple(str(part).partition("?")[0] for part in record.args)
        return True


def gunicorn_logging(django_logging: Mapping[str, Any]) -> dict[str, Any]:
    """gunicorn's `logconfig_dict`: its lines by our handlers, in every process of it. Their level is its `loglevel`."""
    ours = {"filters": ["redact_request"], "propagate": True}
    return {
        **django_logging,
        "filters": {"redact_request": {"()": RedactRequest}},
        "loggers": {**django_logging["loggers"], "gunicorn.error": ours},
    }


def use_json_errors() -> None:
    util.write_error = _write_error


def set_socket_timeouts(listeners: Iterable[Any]) -> None:
    """Accepted sockets inherit the time-outs of the one that they were accepted on."""
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
    # The path is not known here: Anthropic's form around OpenAI's fields, which both kinds of client can read.
    body = json.dumps({"type": "error", "error": error, "request_id": identifier}).encode()
    logger.info("request rejected by web server", extra={"request_id": identifier, "status": status})
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nrequest-id: {identifier}\r\nx-request-id: {identifier}\r\n\r\n"
    )
    util.write_nonblock(sock, head.encode("latin-1") + body)
