"""Responses of a scripted upstream (tests/support/upstream/upstream.py): valid, wrong, slow, cut short."""

from __future__ import annotations

import gzip as gzip_module
import json as json_module
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from tests.support.upstream.upstream import Answer, Exchange

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 40},
    },
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hello", "annotations": []}],
        }
    ],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 150,
    },
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 50},
}
EMBEDDINGS = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.6, -0.8]}],
    "model": "m",
    "usage": {"prompt_tokens": 100, "total_tokens": 100},
}
BY_PATH = {
    "/chat/completions": CHAT,
    "/responses": RESPONSE,
    "/embeddings": EMBEDDINGS,
    "/messages": MESSAGE,
}


def usable() -> Answer:
    """A valid answer of the shape that the request's path asks for; 404 for any other path."""

    def answer(exchange: Exchange) -> None:
        path = exchange.request.path.partition("?")[0]
        shape = next((v for k, v in BY_PATH.items() if path.endswith(k)), None)
        (status(404) if shape is None else json(shape))(exchange)

    return answer


def raw(data: bytes, *, then_close: bool = True) -> Answer:
    """These bytes and nothing else, status line included."""

    def answer(exchange: Exchange) -> None:
        exchange.write(data)
        exchange.keep_alive = not then_close

    return answer


def body(
    content: bytes,
    *,
    status: int = 200,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """A whole, well-formed answer on a connection that stays open."""
    return raw(_head(status, len(content), content_type, headers or {}) + content, then_close=False)


def json(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return body(json_module.dumps(value).encode(), status=status, headers=headers)


def status(code: int, *, headers: Mapping[str, str] | None = None) -> Answer:
    """An error in the form of OpenAI's."""
    error = {"error": {"message": f"scripted {code}", "type": "scripted", "code": None}}
    return json(error, status=code, headers=headers)


def html(*, code: int = 200) -> Answer:
    return body(b"<html><body>Bad gateway</body></html>", status=code, content_type="text/html")


def sse() -> Answer:
    return body(b'data: {"choices": []}\n\ndata: [DONE]\n\n', content_type="text/event-stream")


def gzip(value: Any) -> Answer:
    packed = gzip_module.compress(json_module.dumps(value).encode())
    return body(packed, headers={"Content-Encoding": "gzip"})


def deflate(value: Any) -> Answer:
    packed = zlib.compress(json_module.dumps(value).encode())
    return body(packed, headers={"Content-Encoding": "deflate"})


def chunked(*chunks: bytes, ended: bool = True) -> Answer:
    """With `ended` False the last chunk never comes and the connection closes."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    data = head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return raw(data + b"0\r\n\r\n", then_close=False) if ended else raw(data)


def cut_short(content: bytes, *, missing: int = 10) -> Answer:
    """A Content-Length that promises more than comes."""
    return raw(_head(200, len(content) + missing, "application/json", {}) + content)


def close() -> Answer:
    """Closes in place of an answer."""
    return raw(b"")


def reset(*, after: bytes = b"") -> Answer:
    """A RST, perhaps in the middle of an answer."""

    def answer(exchange: Exchange) -> None:
        exchange.write(after)
        exchange.reset()

    return answer


def hang(*, after: bytes = b"") -> Answer:
    """Nothing (more) comes, and the connection stays open until the client leaves or the upstream stops."""

    def answer(exchange: Exchange) -> None:
        exchange.write(after)
        exchange.pause(3600)
        exchange.keep_alive = False

    return answer


def hang_in_body() -> Answer:
    return hang(after=_head(200, 1000, "application/json", {}) + b'{"id":')


def drip(*, every_seconds: float = 1.0, head: bytes = b"") -> Answer:
    """Headers at once (or `head`), then a byte at a time, without end."""

    def answer(exchange: Exchange) -> None:
        exchange.write(head or _head(200, 1_000_000, "application/json", {}) + b"{")
        while exchange.pause(every_seconds):
            exchange.write(b" ")
        exchange.keep_alive = False

    return answer


def held(gate: threading.Event, then: Answer | None = None) -> Answer:
    """Waits for the gate, so that a test can hold calls and count them; then answers."""

    def answer(exchange: Exchange) -> None:
        if exchange.pause(3600, until=gate):
            (then or usable())(exchange)
        else:
            exchange.keep_alive = False

    return answer


def after(seconds: float, then: Answer | None = None) -> Answer:
    """What a model of this latency answers."""

    def answer(exchange: Exchange) -> None:
        if exchange.pause(seconds):
            (then or usable())(exchange)
        else:
            exchange.keep_alive = False

    return answer


def _head(code: int, length: int, content_type: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {code} Scripted", f"Content-Type: {content_type}", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()
