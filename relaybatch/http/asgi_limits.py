"""What the service needs under an ASGI server that Django leaves open: flat memory both ways, and no connection left.

Django takes in the whole body before the request begins, makes the whole of a synchronous stream before its first part
goes out, and gives each request a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections

from relaybatch.http.request_body import DRAIN_SECONDS, max_sent_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from django.core.handlers.asgi import ASGIRequest

    # https://asgi.readthedocs.io/en/latest/specs/main.html#applications
    Message = Mapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


def with_body_limit(application: Application) -> Application:
    """Django's application, which sees bounded bodies and leaves no connection behind."""

    async def bounded(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = BoundedBody(receive, limit_bytes=max_sent_bytes())
        async with ThreadSensitiveContext():  # Django's own gives way to it
            try:
                await application(scope, body, send)
            finally:
                # The thread ends here; Django forgets the connections of streams that break off.
                await sync_to_async(close_old_connections)()

    return bounded


class BoundedBody:
    """A request's `receive`: one byte more than the limit tells the application that the body is too large.

    What follows is dropped before the application goes on, as much as the limit again, so that a client which sends
    all before it reads sees the refusal. Of a client that sends still more nothing is taken: its server hangs up.
    """

    def __init__(self, receive: Receive, *, limit_bytes: int, drain_seconds: float = DRAIN_SECONDS) -> None:
        self._receive = receive
        self._limit_bytes = limit_bytes
        self._drain_seconds = drain_seconds
        self._remaining_bytes = limit_bytes + 1
        self._is_abandoned = False

    async def __call__(self) -> Message:
        if self._is_abandoned:
            # Django asks whether the client has left, and gives that up with its answer.
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
        """The client's leaving, if it does so meanwhile."""
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
    """Each part is made in the request's thread, when the server has taken the one before.

    Django closes what the view gave it with the response, in that thread, also when the client has left. Of a stream
    that breaks off it would leave the file of the request's body open.
    """
    take = sync_to_async(_next_part)
    try:
        while (part := await take(parts)) is not None:
            yield part
    except Exception:
        request._stream.close()
        raise


def _next_part(parts: Iterator[bytes]) -> bytes | None:
    """None at the end: StopIteration cannot leave a coroutine."""
    return next(parts, None)
