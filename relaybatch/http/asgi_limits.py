"""Limits for the service under an ASGI server: bounded memory for bodies and streams, no leaked database connections.

Django reads the whole body before the request begins, builds the whole of a synchronous stream before it sends the
first part, and gives each request a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections

from relaybatch.http.body.body_limits import max_sent_bytes
from relaybatch.http.body.request_body import DRAIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from django.core.handlers.asgi import ASGIRequest

    # https://asgi.readthedocs.io/en/latest/specs/main.html#applications
    Message = Mapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


def with_body_limit(application: Application) -> Application:
    """Wrap Django's application: request bodies are limited, and database connections are closed at the end."""

    async def limited(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = BoundedBody(receive, limit_bytes=max_sent_bytes())
        async with ThreadSensitiveContext():  # takes precedence over Django's own
            try:
                await application(scope, body, send)
            finally:
                # The thread ends here. Django leaves the connections of aborted streams open.
                await sync_to_async(close_old_connections)()

    return limited


class BoundedBody:
    """A request's `receive` that passes on at most one byte more than the limit.

    That byte tells the application that the body is too large. Then as much as the limit again is read and discarded
    before the application continues, so that a client which sends everything before it reads sees the error. If a
    client sends even more, the server closes the connection.
    """

    def __init__(self, receive: Receive, *, limit_bytes: int, drain_seconds: float = DRAIN_SECONDS) -> None:
        self._receive = receive
        self._limit_bytes = limit_bytes
        self._drain_seconds = drain_seconds
        self._remaining_bytes = limit_bytes + 1
        self._is_abandoned = False

    async def __call__(self) -> Message:
        if self._is_abandoned:
            # Django listens for a disconnect here, and cancels that once it has a response.
            await asyncio.Event().wait()
        message = await self._receive()
        body = message.get("body", b"")
        if len(body) <= self._remaining_bytes:
            self._remaining_bytes -= len(body)
            return message
        last = {**message, "body": body[: self._remaining_bytes], "more_body": False}
        self._remaining_bytes = 0
        leaving = await self._drain() if message.get("more_body") else None
        return leaving or last

    async def _drain(self) -> Message | None:
        """Discard the rest of the body. Returns the disconnect message if the client disconnects meanwhile."""
        drained_bytes = 0
        self._is_abandoned = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._drain_seconds):
                while drained_bytes < self._limit_bytes:
                    message = await self._receive()
                    drained_bytes += len(message.get("body", b""))
                    if not message.get("more_body"):
                        self._is_abandoned = False
                        return message if message["type"] == "http.disconnect" else None
        return None


async def stream_parts(parts: Iterator[bytes], request: ASGIRequest) -> AsyncIterator[bytes]:
    """Build each part in the request's thread, once the server has taken the part before it.

    Django closes the view's iterator with the response, in that thread, also after a disconnect. When a stream raises,
    Django would leave the temporary file of the request's body open.
    """
    take = sync_to_async(_next_part)
    try:
        while (part := await take(parts)) is not None:
            yield part
    except Exception:
        request._stream.close()
        raise


def _next_part(parts: Iterator[bytes]) -> bytes | None:
    """The next part, None at the end: a coroutine cannot raise StopIteration."""
    return next(parts, None)
