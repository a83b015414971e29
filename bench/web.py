"""Calls of a web process, as its callers make them."""

from __future__ import annotations

import contextlib
import http.client
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil

from bench.figures import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Web:
    """The Procfile's `web` line. `pid`: of gunicorn's master process."""

    port: int
    pid: int
    headers: dict[str, str] = field(repr=False)

    @property
    def worker_pid(self) -> int:
        """The one worker process, so that its memory can be measured."""
        (child,) = psutil.Process(self.pid).children()
        return int(child.pid)

    def call(self, method: str, path: str, *, body: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body of a response, on a connection of its own."""
        with self.connect() as connection:
            return connection.call(method, path, body=body)

    @contextlib.contextmanager
    def connect(self) -> Iterator[KeepAlive]:
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        ) as connection:
            yield KeepAlive(connection, self.headers)

    def submit(self, body: bytes) -> str:
        """Submit a batch and return its id."""
        with self.connect() as connection:
            return connection.submit(body)


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """A caller with one open connection, as an SDK keeps it."""

    connection: http.client.HTTPConnection
    headers: dict[str, str] = field(repr=False)

    def call(self, method: str, path: str, *, body: bytes | None = None) -> tuple[int, bytes]:
        self.connection.request(method, path, body=body, headers=self.headers)
        response = self.connection.getresponse()
        return response.status, response.read()

    def submit(self, body: bytes) -> str:
        status, answer = self.call("POST", "/v1/batches", body=body)
        if status != 202:
            raise BenchError(f"the submission was answered with {status}: {answer[:300]!r}")
        return str(json.loads(answer)["id"])


def is_healthy(port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as client,
    ):
        client.request("GET", "/healthz")
        return client.getresponse().status == 200
    return False
