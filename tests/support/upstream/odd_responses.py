"""Responses that echo the prompt of their request in every odd way that leaves a connection out of step.

`GOOD`: the prompt has to come back. `BAD`: it need not; but no other request's prompt may.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.upstream.upstream import Answer, Exchange, Request

LATE_SECONDS = 0.1
_OK = b"HTTP/1.1 200 OK\r\n"
_CUTS = {
    "within the status line": b"HTTP/1.1 20",
    "behind the status": b"HTTP/1.1 200",
    "behind the status line": _OK,
    "within a header": _OK + b"Content-Le",
    "behind a header": _OK + b"Content-Length: 2\r\n",
    "behind the headers": _OK + b"Content-Length: 2\r\n\r\n",
    "within the body": _OK + b"Content-Length: 99\r\n\r\n{",
    "within a chunk's size": _OK + b"Transfer-Encoding: chunked\r\n\r\n1",
    "within a chunk": _OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{",
    "behind a chunk": _OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    "within an interim answer": b"HTTP/1.1 103 Early Hints\r\nLink: <",
    "behind an interim answer": b"HTTP/1.1 103 Early Hints\r\n\r\n",
}


def prompt_of(request: Request) -> str:
    return str(request.json()["messages"][0]["content"])


def body_with(prompt: str) -> bytes:
    """The body of a call whose prompt `prompt_in` finds again in the response."""
    return json.dumps({"model": "echo-1", "messages": [{"role": "user", "content": prompt}]}).encode()


def prompt_in(answer: bytes) -> str:
    return str(json.loads(answer)["choices"][0]["message"]["content"])


def echo(exchange: Exchange) -> bytes:
    message = {"role": "assistant", "content": prompt_of(exchange.request)}
    value: dict[str, Any] = {**answers.CHAT, "choices": [{"index": 0, "message": message}]}
    return json.dumps(value).encode()


def whole(body: bytes, *headers: bytes, status: bytes = _OK) -> bytes:
    lines = (b"Content-Type: application/json", b"Content-Length: %d" % len(body), *headers)
    return status + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def odd(data: Callable[[bytes], bytes], *, after: bytes = b"", late: bytes = b"") -> Answer:
    """`after`: before everything, and a moment earlier. `late`: behind everything, and a moment later."""

    def answer(exchange: Exchange) -> None:
        if after:
            exchange.write(after)
            exchange.pause(LATE_SECONDS)
        exchange.write(data(echo(exchange)))
        if late:
            exchange.pause(LATE_SECONDS)
            exchange.write(late)

    return answer


def _twice(*, late: bool) -> Answer:
    def answer(exchange: Exchange) -> None:
        data = whole(echo(exchange))
        exchange.write(data if late else data * 2)
        if late:
            exchange.pause(LATE_SECONDS)
            exchange.write(data)

    return answer


def _chunks(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def _chunked(*headers: bytes, behind: bytes = b"") -> Answer:
    head = _OK + b"".join(line + b"\r\n" for line in (b"Transfer-Encoding: chunked", *headers)) + b"\r\n"
    return odd(lambda body: head + _chunks(body) + behind)


def stolen(text: str = "stolen") -> bytes:
    """A response that no request asked for."""
    message = {"role": "assistant", "content": text}
    return whole(json.dumps({**answers.CHAT, "choices": [{"index": 0, "message": message}]}).encode())


def _unread(status: bytes) -> Answer:
    """A status that has no body, with one."""
    return odd(lambda body: whole(body, status=b"HTTP/1.1 " + status + b"\r\n"))


WELL: Answer = odd(whole)
GOOD: dict[str, Answer] = {
    "two codings": odd(
        lambda body: _OK + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + _chunks(body)
    ),
    "a coding before the chunks, and no length": odd(
        lambda body: whole(b"", b"Transfer-Encoding: identity, chunked") + _chunks(body)
    ),
    "103 at once": odd(lambda body: b"HTTP/1.1 103 Early Hints\r\n\r\n" + whole(body)),
    "103 earlier": odd(whole, after=b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"),
    "102 earlier": odd(whole, after=b"HTTP/1.1 102 Processing\r\n\r\n"),
    "a row of interim answers": odd(
        lambda body: (
            b"".join(b"HTTP/1.1 %d X\r\nA: b\r\n\r\n" % n for n in (100, 102, 103, 199)) + whole(body)
        )
    ),
    "a hundred and fifty header lines": odd(
        lambda body: whole(body, *(b"X-Debug-%d: %d" % (n, n) for n in range(150)))
    ),
    "headers of 100 KB": odd(lambda body: whole(body, *(b"X-Debug: " + b"d" * 1000,) * 100)),
    "bytes behind it": odd(lambda body: whole(body) + b"\r\njunk"),
    "an answer behind it": odd(lambda body: whole(body) + stolen()),
    "an answer behind it, later": odd(whole, late=stolen()),
    "twice": _twice(late=False),
    "twice, later": _twice(late=True),
    "chunks and a length": _chunked(b"Content-Length: 5"),
    "chunks and an answer behind them": _chunked(behind=stolen()),
    "a length that is longer than its answer, in chunks": _chunked(b"Content-Length: 5000"),
    "an answer until the end of the connection": odd(
        lambda body: b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body + stolen()
    ),
    "a header that is none, before the length": odd(lambda body: whole(body, b"no header")),
    "a 408 that nobody asked for, later": odd(whole, late=b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n"),
}
BAD: dict[str, Answer] = {
    "a chunk of a size below zero": odd(
        lambda body: _OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + body + whole(body)
    ),
    "a length that is too short": odd(
        lambda body: _OK + b"Content-Length: 9\r\n\r\n" + body + b"\r\n" + whole(body)
    ),
    "two lengths": odd(lambda body: whole(body, b"Content-Length: 9")),
    "204 with a body": _unread(b"204 No Content"),
    "304 with a body": _unread(b"304 Not Modified"),
    "101 and nothing": answers.raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
    "an error twice": odd(lambda body: whole(body, status=b"HTTP/1.1 400 Bad\r\n") * 2),
    "an error and an answer": odd(lambda body: whole(b"{}", status=b"HTTP/1.1 500 Bad\r\n") + whole(body)),
    "chunks of a wrong size": odd(
        lambda body: _OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n" + body + b"\r\n0\r\n\r\n" + whole(body)
    ),
    **{f"a cut {where}": answers.raw(data) for where, data in _CUTS.items()},
    **{f"a reset {where}": answers.reset(after=data) for where, data in _CUTS.items()},
}
