"""A minimal upstream: a Chat Completions response after the delay that the request body asks for.

`python -m bench.upstream --port 9000`. `GET /seen` returns statistics since the last `GET /seen?reset`.
Not a complete HTTP server: it only parses what `requests` sends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import signal
import time
from typing import Any

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_ITEM = re.compile(rb"idempotency-key: *(\S+)", re.IGNORECASE)
_DELAY = re.compile(rb'"delay_ms": ?(\d+)')
_BODY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "echo-1",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello " * 30}}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150},
    }
).encode()


def _http_response(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


_ANSWER = _http_response(_BODY)


class RequestStats:
    """`first_at`: monotonic time of the first request; all processes of a machine share that clock."""

    def __init__(self) -> None:
        self.requests = 0
        self.items: set[bytes] = set()
        self.inside = 0
        self.most_inside = 0
        self.first_at = 0.0

    def begin_request(self, item: bytes) -> None:
        if not self.requests:
            self.first_at = time.monotonic()
        self.requests += 1
        self.items.add(item)
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)

    def to_json(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "items": len(self.items),
            "most_inside": self.most_inside,
            "first_at": self.first_at,
        }


class Connection(asyncio.Protocol):
    seen = RequestStats()
    transport: asyncio.Transport

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        length = _LENGTH.search(head)
        expected = int(length[1]) if length else 0
        if len(rest) < expected:
            return
        self._buffer = rest[expected:]
        self._answer(head, rest[:expected])

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET"):
            self.transport.write(_http_response(json.dumps(Connection.seen.to_json()).encode()))
            if head.startswith(b"GET /seen?reset"):
                Connection.seen = RequestStats()
            return
        item, delay = _ITEM.search(head), _DELAY.search(body)
        Connection.seen.begin_request(item[1] if item else b"")
        asyncio.get_running_loop().call_later(int(delay[1]) / 1000 if delay else 0, self._finish)

    def _finish(self) -> None:
        Connection.seen.inside -= 1
        if not self.transport.is_closing():
            self.transport.write(_ANSWER)


async def serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", port, backlog=128)
    task = asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="An upstream for benches.")
    parser.add_argument("--port", type=int, required=True)
    with contextlib.suppress(asyncio.CancelledError, KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
