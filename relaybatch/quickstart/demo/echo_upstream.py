"""The demo's upstream: a Chat Completions, Responses and Messages API that echoes the user, and an Embeddings API whose
vectors depend on the text alone. It needs no API key.

`python -m relaybatch.quickstart.demo.echo_upstream --port 9000 [--delay-ms 50]`.
The default delay is `ECHO_DELAY_MS`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from relaybatch.quickstart.demo.echo_responses import ROUTES, encode_json, openai_error

MAX_BODY_BYTES = 64 * 1024 * 1024


class BadBodyError(Exception):
    """The request body is not one that the demo upstream can answer."""


class EchoServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *, port: int, delay_seconds: float) -> None:
        super().__init__(("127.0.0.1", port), EchoHandler)
        self.delay_seconds = delay_seconds


class EchoHandler(BaseHTTPRequestHandler):
    server: EchoServer
    protocol_version = "HTTP/1.1"
    server_version = "relaybatch-echo"
    disable_nagle_algorithm = True
    wbufsize = -1
    """Buffered, so that headers and body are sent in one packet."""

    def do_POST(self) -> None:
        body = self._read_body()
        if body is None:
            return
        route = ROUTES.get(self.path.partition("?")[0])
        if route is None:
            self._send(404, openai_error(f"there is no {self.path}"))
            return
        try:
            answer = route.answer(parse_body(body))
        except BadBodyError as problem:
            self._send(400, route.error(str(problem)))
            return
        time.sleep(self.server.delay_seconds)
        self._send(200, answer)

    def do_GET(self) -> None:
        known = self.path.partition("?")[0] in ROUTES
        status, text = (405, "use POST") if known else (404, f"there is no {self.path}")
        self._send(status, openai_error(text))

    def handle_expect_100(self) -> bool:
        go_on = super().handle_expect_100()
        self.wfile.flush()
        return go_on

    def _read_body(self) -> bytes | None:
        """Read the body. None if an error was sent: the length is missing or over the limit."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close_connection = True
            self._send(411, openai_error("Content-Length is needed"))
            return None
        if int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._send(413, openai_error(f"more than {MAX_BODY_BYTES} bytes"))
            return None
        return self.rfile.read(int(length))

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = encode_json(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing: a line per item would bury the demo's own output."""


def parse_body(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise BadBodyError("the body is not JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get("model"), str):
        raise BadBodyError("the body must be an object with a model")
    if value.get("stream"):
        raise BadBodyError("this upstream does not stream")
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description="A demo upstream that answers with what the user said.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--delay-ms", type=float, default=float(os.environ.get("ECHO_DELAY_MS") or 0))
    arguments = parser.parse_args()
    server = EchoServer(port=arguments.port, delay_seconds=arguments.delay_ms / 1000)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
