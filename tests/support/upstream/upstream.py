"""A scripted upstream on a real socket: it answers by a script, however wrongly, and keeps the requests.

    with Upstream() as upstream:                               # or the fixture `upstream`
        upstream.script(answers.status(429), answers.hang())   # one answer for each request, in order
        upstream.handler = lambda request: ...                 # or chosen by looking at the request

Requests beyond the script get a valid answer of their path's shape, with usage. Other processes reach it by `url`.
The answers are in `tests/support/upstream/upstream_responses.py`.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

DEADLINE_SECONDS = 20.0


@dataclass(slots=True)
class Request:
    """`headers`: names in lower case. `connection`: which connection it came on, from 1. `at`: monotonic seconds.

    `disconnected` is set when the client is seen to hang up before it was answered.
    """

    number: int
    connection: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    disconnected: threading.Event = field(default_factory=threading.Event)

    @property
    def credential(self) -> str:
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return bearer or self.headers.get("x-api-key", "")

    def json(self) -> Any:
        return json.loads(self.body)


class Exchange:
    """One request being answered: what an answer writes to."""

    def __init__(
        self,
        *,
        request: Request,
        sock: socket.socket,
        stopping: threading.Event,
        on_answer: Callable[[], None],
    ) -> None:
        self.request = request
        self.keep_alive = True
        self._on_answer: Callable[[], None] | None = on_answer
        self._sock = sock
        self._stopping = stopping

    def write(self, data: bytes) -> None:
        self.begin_answer()
        self._sock.sendall(data)

    def begin_answer(self) -> None:
        """Before the first byte: a client that has the last one may send its next request at once."""
        on_answer, self._on_answer = self._on_answer, None
        if on_answer:
            on_answer()

    def pause(self, seconds: float = DEADLINE_SECONDS, *, until: threading.Event | None = None) -> bool:
        """Waits; False when the client hung up meanwhile or the upstream stops."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and until.is_set()):
            if self._stopping.is_set() or self._hung_up():
                return False
        return True

    def reset(self) -> None:
        """Closes so that the client meets a RST."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.keep_alive = False

    def _hung_up(self) -> bool:
        readable, _, _ = select.select([self._sock], [], [], 0.01)
        try:
            gone = bool(readable) and self._sock.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            gone = True
        if gone:
            self.request.disconnected.set()
        return gone


Answer = Callable[[Exchange], None]


class Upstream:
    """`in_flight`: requests being answered now; `max_in_flight`: the most so far that waited for an answer at once.

    `broken_handshakes`: with TLS, how many connections to close in place of a handshake. `before_body`: called with
    the socket when the headers of a request are read, and its body is not.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        from tests.support.upstream import upstream_responses

        self.handler: Callable[[Request], Answer] = lambda _: upstream_responses.usable()
        self.in_flight = 0
        self.max_in_flight = 0
        self._unanswered = 0
        self.broken_handshakes = 0
        self.before_body: Callable[[socket.socket], object] | None = None
        self._tls = tls
        self._script: deque[Answer] = deque()
        self._requests: list[Request] = []
        self._sockets: set[socket.socket] = set()
        self._connections = 0
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops listening and hangs up; calling twice is safe."""
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join(DEADLINE_SECONDS)

    def hang_up(self) -> None:
        """Closes every connection, idle ones too, and goes on listening."""
        with self._changed:
            sockets = list(self._sockets)
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def write(self, data: bytes) -> None:
        """To every connection, whether or not it is asked. Not over TLS."""
        with self._changed:
            sockets = list(self._sockets)
        for sock in sockets:
            sock.sendall(data)

    def script(self, *answers: Answer) -> None:
        with self._changed:
            self._script.extend(answers)

    @property
    def requests(self) -> list[Request]:
        with self._changed:
            return list(self._requests)

    @property
    def connections(self) -> int:
        with self._changed:
            return self._connections

    @property
    def open_connections(self) -> int:
        with self._changed:
            return len(self._sockets)

    def wait_for(self, condition: Callable[[Upstream], bool], *, seconds: float = DEADLINE_SECONDS) -> None:
        """Until the condition holds, looked at after every change; `lambda up: len(up.requests) == 3`."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), seconds):
                raise AssertionError(
                    f"not within {seconds} s: {len(self._requests)} requests, {self.in_flight} in flight"
                )

    def _start(self, run: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=run, args=args, daemon=True, name="upstream")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                self._connections += 1
                # Another descriptor to hang up with: TLS takes the first one over.
                held = sock.dup()
                self._sockets.add(held)
                self._start(self._serve, sock, held, self._connections)

    def _serve(self, sock: socket.socket, held: socket.socket, connection: int) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                if self._breaks_handshake():
                    return
                sock = self._tls.wrap_socket(sock, server_side=True)
            self._serve_requests(sock, connection)
        except (OSError, ValueError):
            pass  # The client hung up, or was disconnected: tests do both.
        finally:
            with self._changed:
                self._sockets.discard(held)
                held.close()
                sock.close()
                self._changed.notify_all()

    def _breaks_handshake(self) -> bool:
        with self._changed:
            self.broken_handshakes -= 1
            return self.broken_handshakes >= 0

    def _serve_requests(self, sock: socket.socket, connection: int) -> None:
        with sock.makefile("rb") as stream:
            while (request := self._read(sock, stream, connection)) is not None:
                exchange = Exchange(
                    request=request, sock=sock, stopping=self._stopping, on_answer=self._begin_answer
                )
                answer = self._begin(request)
                try:
                    answer(exchange)
                finally:
                    exchange.begin_answer()
                    self._end()
                if not exchange.keep_alive:
                    return

    def _read(self, sock: socket.socket, stream: Any, connection: int) -> Request | None:
        line = stream.readline()
        if not line:
            return None
        method, path, _ = line.decode("latin-1").split(" ", 2)
        headers: dict[str, str] = {}
        while (line := stream.readline()) not in (b"\r\n", b"\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if self.before_body is not None:
            self.before_body(sock)
        body = stream.read(int(headers.get("content-length", "0")))
        return Request(0, connection, method, path, headers, body, time.monotonic())

    def _begin(self, request: Request) -> Answer:
        with self._changed:
            self._requests.append(request)
            request.number = len(self._requests)
            self.in_flight += 1
            self._unanswered += 1
            self.max_in_flight = max(self.max_in_flight, self._unanswered)
            self._changed.notify_all()
            if self._script:
                return self._script.popleft()
        return self.handler(request)

    def _begin_answer(self) -> None:
        with self._changed:
            self._unanswered -= 1

    def _end(self) -> None:
        with self._changed:
            self.in_flight -= 1
            self._changed.notify_all()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running
