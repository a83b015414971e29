"""The real ASGI application without a server, and a route whose stream a test can observe."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.http import StreamingHttpResponse
from django.urls import path

from relaybatch import log_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from django.http import HttpRequest

    from relaybatch.http.asgi_limits import Message

MAX_PARTS = 100


@dataclass
class AsgiRequest:
    """One request: counts what the application reads of its body, and keeps the response.

    `on_part` is called with each part of the answer before the application may go on; when it says False, the client
    leaves, and nothing is sent any more.
    """

    path: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Iterable[bytes] = (b"",)
    on_part: Callable[[bytes], bool | None] = lambda _: None
    status: int = 0
    answer_headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    taken_bytes: int = 0
    spooled_bytes: int = 0

    @property
    def content(self) -> bytes:
        return b"".join(self.parts)

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    def run(self) -> AsgiRequest:
        asyncio.run(self._run())
        return self

    def disconnect(self) -> None:
        """Disconnect; may be called from the application's thread."""
        self._loop.call_soon_threadsafe(self._left.set)

    async def _run(self) -> None:
        # Not before the settings, and the servers that they name.
        from relaybatch.asgi import application

        self._pieces = iter(self.body)
        self._ended = False
        self._left = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        await application(self._scope(), self._receive, self._send)

    def _scope(self) -> dict[str, Any]:
        where, _, query = self.path.partition("?")
        headers = [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
        return {
            "type": "http",
            "method": self.method,
            "path": where,
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost"), *headers],
        }

    async def _receive(self) -> Message:
        if self._ended:
            await self._left.wait()
            return {"type": "http.disconnect"}
        piece = next(self._pieces, b"")
        self._ended = not piece
        self.taken_bytes += len(piece)
        return {"type": "http.request", "body": piece, "more_body": not self._ended}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.spooled_bytes = largest_unnamed_file_bytes()
            self.status = message["status"]
            self.answer_headers = {
                name.decode().lower(): value.decode() for name, value in message["headers"]
            }
        elif body := message.get("body"):
            self.parts.append(body)
            if await asyncio.to_thread(self.on_part, body) is False:
                self._left.set()
                await asyncio.Event().wait()  # as a server that waits for a client to take what it has


def largest_unnamed_file_bytes() -> int:
    """Size of the largest unnamed file that this process has open: a spooled body is one."""
    sizes = [0]
    for number in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            found = os.fstat(int(number))
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                sizes.append(found.st_size)
    return max(sizes)


class WatchedStream:
    """A stream whose parts are counted; each is the id of the request that it is built for."""

    def __init__(self) -> None:
        self.made = 0
        self.closed = False
        self.breaks_at: int | None = None
        self.on_made: Callable[[int], None] = lambda _: None

    def parts(self) -> Iterator[bytes]:
        try:
            while self.made < MAX_PARTS:
                self.made += 1
                self.on_made(self.made)
                yield self._part()
        finally:
            self.closed = True

    def _part(self) -> bytes:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if self.made == self.breaks_at:
            raise LookupError
        return log_format.request_id.get().encode()


watched = WatchedStream()


def stream(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(watched.parts())


urlpatterns = [path("stream", stream)]
