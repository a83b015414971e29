"""A real S3 server (moto's) in a thread, which can be told to answer wrongly."""

from __future__ import annotations

import contextlib
import logging
import threading
import urllib.request
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@dataclass(frozen=True, slots=True)
class StoreRequest:
    method: str
    path: str
    query: str


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """Headers beside the content type; the body's length is added unless they have one."""

    status: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class ObjectServer:
    """`wrong`: called before each request; an answer of it is sent instead of moto's."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self.wrong: Callable[[StoreRequest], WrongAnswer | None] | None = None
        self.requests: list[StoreRequest] = []
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
        }

    def new_bucket(self) -> str:
        """Return the URL of a prefix in a new bucket."""
        name = f"bucket-{uuid.uuid4().hex}"
        address = f"http://127.0.0.1:{self._server.port}/{name}"
        with urllib.request.urlopen(urllib.request.Request(address, method="PUT")):
            return f"s3://{name}/prefix"

    def clear(self) -> None:
        """Remove all buckets: moto keeps what is large in open files of this process."""
        address = f"http://127.0.0.1:{self._server.port}/moto-api/reset"
        with urllib.request.urlopen(urllib.request.Request(address, method="POST")):
            pass

    @contextlib.contextmanager
    def answering(self, wrong: Callable[[StoreRequest], WrongAnswer | None]) -> Iterator[list[StoreRequest]]:
        """Yield the list of requests that come meanwhile."""
        self.wrong = wrong
        self.requests.clear()
        try:
            yield self.requests
        finally:
            self.wrong = None

    def _serve(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = StoreRequest(
            environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        )
        self.requests.append(request)
        answer = self.wrong(request) if self.wrong else None
        if answer is None:
            return self._moto(environ, start_response)  # type: ignore[no-any-return]
        start_response(answer.status, [("Content-Type", "application/xml"), *answer.headers])
        return [answer.body]


@pytest.fixture(scope="session")
def _object_server_of_the_run() -> Iterator[ObjectServer]:
    server = ObjectServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def object_server(
    _object_server_of_the_run: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObjectServer]:
    """Its variables are set in this process, and so for what is started from it."""
    for name, value in _object_server_of_the_run.environment.items():
        monkeypatch.setenv(name, value)
    yield _object_server_of_the_run
    _object_server_of_the_run.wrong = None
    _object_server_of_the_run.clear()
