"""A real web process on the test database, and a client that can send any bytes."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from relaybatch.quickstart.servers.watchdog_process import WatchdogProcess
from tests.support.run.conformance import assert_conforms
from tests.support.servers.deployment import ROOT, deployment_environment, procfile_command, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

LISTENING = re.compile(r"Listening at: http://127\.0\.0\.1:(\d+)")
ONE_WORKER = "--bind=127.0.0.1:0 --workers=1 --threads=8"


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Web:
    """`call` sends a valid request; `send_raw` sends bytes as they are and returns the response."""

    def __init__(self, process: WatchdogProcess, port: int) -> None:
        self.process = process
        self.port = port
        self.origin = f"http://127.0.0.1:{port}"

    def call(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] | None = None,
    ) -> Reply:
        """An iterable body is sent chunked."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            chunked = body is not None and not isinstance(body, bytes)
            connection.request(method, path, body=body, headers=dict(headers or {}), encode_chunked=chunked)
            reply = reply_of(connection.getresponse())
        if "content-encoding" not in reply.headers:
            assert_conforms(method, path.partition("?")[0], reply.status, reply.headers, reply.body)
        return reply

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        with contextlib.closing(socket.create_connection(("127.0.0.1", self.port), timeout=30)) as client:
            yield client

    def send_raw(self, sent: bytes) -> Reply:
        with self.connected() as client:
            client.sendall(sent)
            return read_reply(client)

    def log(self) -> str:
        return self.process.log.read_text(errors="replace")


def reply_of(response: http.client.HTTPResponse) -> Reply:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, response.read())


def read_reply(client: socket.socket) -> Reply:
    response = http.client.HTTPResponse(client)
    response.begin()
    return reply_of(response)


@contextlib.contextmanager
def web_process(folder: Path, **environment: str) -> Iterator[Web]:
    """Start the Procfile's web process with one worker, on a port that the system chose."""
    process = WatchdogProcess(
        procfile_command("web"),
        log=folder / "web.log",
        stop_steps="TERM:10",
        environment=deployment_environment()
        | {"GUNICORN_CMD_ARGS": ONE_WORKER, "LOG_FORMAT": "json"}
        | environment,
        directory=ROOT,
    )
    try:
        wait_until(lambda: bool(LISTENING.search(process.log.read_text())), lambda: process.log.read_text())
        web = Web(process, int(LISTENING.findall(process.log.read_text())[-1]))
        # The socket listens before the application is loaded; the first answer says that it is.
        assert web.call("GET", "/healthz").status == 200, web.log()
        yield web
    finally:
        process.stop()
