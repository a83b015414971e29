"""The upstream: responds well, slowly, wrongly or not at all, and records every request with its response."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import socket
import struct
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.chaos.deployment.catalog import REVOKED_HOST_KEY
from tests.chaos.deployment.upstream_responses import INTERIM, KINDS, Kind, error_body, head, usable_body

if TYPE_CHECKING:
    from collections.abc import Mapping

HOSTS = ("near", "far")
HEALTHY_PROFILE: Mapping[str, float] = {"well": 1}
RETRY_AFTERS = ("0", "1", "2", "-1", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "")
STOP_SECONDS = 10.0
# Probability of a 1xx response before the request body was read, unless the profile is the healthy one.
INTERIM_PROBABILITY = 0.03


@dataclass(slots=True)
class Served:
    """A request and its response. `is_whole`: the complete response was written to a connection that was still open."""

    number: int
    at: float
    host: str
    credential: str
    item: str
    body_hash: bytes
    kind: str
    answer: bytes = b""
    is_whole: bool = False

    @property
    def is_usable(self) -> bool:
        return self.is_whole and KINDS[self.kind].usable


class Upstream:
    """Two hosts on an event loop in a thread of its own. `profile`: kinds of responses with their weights."""

    def __init__(self, *, seed: int) -> None:
        self.profile: Mapping[str, float] = HEALTHY_PROFILE
        self.served: list[Served] = []
        self.ports: dict[str, int] = {}
        self._random = random.Random(f"upstream {seed}")
        self._servers: dict[str, asyncio.Server] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="upstream", daemon=True)

    def start(self) -> None:
        self._thread.start()
        for host in HOSTS:
            self.start_host(host)

    def stop(self) -> None:
        for host in list(self._servers):
            self.stop_host(host)
        asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop).result(STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)
        self._loop.close()

    def start_host(self, host: str) -> None:
        if host not in self._servers:
            asyncio.run_coroutine_threadsafe(self._listen(host), self._loop).result(STOP_SECONDS)

    def stop_host(self, host: str) -> None:
        """Close the host's port and abort its connections."""
        asyncio.run_coroutine_threadsafe(self._close_host(host), self._loop).result(STOP_SECONDS)

    async def _listen(self, host: str) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(host, reader, writer)

        server = await asyncio.start_server(serve, "127.0.0.1", self.ports.get(host, 0), backlog=256)
        self.ports[host] = server.sockets[0].getsockname()[1]
        self._servers[host] = server

    async def _close_host(self, host: str) -> None:
        server = self._servers.pop(host, None)
        if server:
            server.close()
            for writer in list(self._writers):
                if writer.get_extra_info("sockname")[1] == self.ports[host]:
                    writer.transport.abort()

    async def _end_tasks(self) -> None:
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._serve_one(host, reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client disconnected, or was disconnected by a fault
        finally:
            self._writers.discard(writer)
            with contextlib.suppress(OSError):
                writer.close()

    async def _serve_one(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request. False if the connection must be closed then."""
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request_line, *lines = text.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if self.profile is not HEALTHY_PROFILE and self._random.random() < INTERIM_PROBABILITY:
            await self._write(INTERIM, writer)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        served = self._record(host, headers, body)
        path = request_line.split(" ")[1]
        await self._pause(served.kind, reader)
        if reader.at_eof():
            return False
        return await self._answer(served, path, writer)

    def _record(self, host: str, headers: Mapping[str, str], body: bytes) -> Served:
        profile = self.profile
        served = Served(
            number=len(self.served),
            at=time.monotonic(),
            host=host,
            credential=headers.get("authorization", "").removeprefix("Bearer ")
            or headers.get("x-api-key", ""),
            item=headers.get("idempotency-key", ""),
            body_hash=hashlib.sha256(body).digest(),
            kind=self._random.choices(list(profile), list(profile.values()))[0],
        )
        if served.kind == "401" and served.credential != REVOKED_HOST_KEY:
            served.kind = "403"
        self.served.append(served)
        return served

    async def _pause(self, kind: str, reader: asyncio.StreamReader) -> None:
        """Wait as the kind of response demands, at most until the client disconnects."""
        seconds = self._random.uniform(0.01, 0.15)
        if kind == "slow":
            seconds = self._random.uniform(0.5, 3.0)
        if kind == "hanging":
            seconds = 3600.0
        end = time.monotonic() + seconds
        while not reader.at_eof() and (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.1))

    async def _answer(self, served: Served, path: str, writer: asyncio.StreamWriter) -> bool:
        kind = KINDS[served.kind]
        if served.kind == "reset":
            sock: socket.socket = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if kind.before:
            await self._write(kind.before, writer)
            await self._moment(kind)
        if kind.status == 0:
            return False
        body = self._body(served, path)
        data = head(kind.status, len(body) + kind.missing, self._headers(served.kind)) + body
        again = data if kind.twice else b""
        await self._write(data + kind.behind + (b"" if kind.apart else again), writer)
        if writer.is_closing():
            return False
        served.answer, served.is_whole = body, kind.missing <= 0
        if again and kind.apart:
            await self._moment(kind)
            await self._write(again, writer)
        return served.is_whole

    async def _write(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    async def _moment(self, kind: Kind) -> None:
        """Pause for less than the idle time after which the client reuses a connection."""
        await asyncio.sleep(self._random.uniform(0.01, 0.2) if kind.apart else 0)

    def _headers(self, kind: str) -> dict[str, str]:
        if kind == "many headers":
            return {f"X-Debug-{number}": "d" * 200 for number in range(150)}
        if kind == "429" and (after := self._random.choice(RETRY_AFTERS)):
            return {"Retry-After": after}
        return {}

    def _body(self, served: Served, path: str) -> bytes:
        match served.kind:
            case "garbage":
                return b"certainly not JSON"
            case "list":
                return b"[]"
            case kind if KINDS[kind].status != 200:
                return error_body(KINDS[kind].status)
            case kind:
                return usable_body(path, served.number, with_usage=kind != "no usage")
