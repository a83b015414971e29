"""Connections to upstreams: TLS, proxies, denied addresses, idle connections."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.resolution import resolve
from routing.transport import connection_pool, idle_connections
from routing.upstream.send import send
from tests.support.calls.upstream_calls import Aborter, call_of
from tests.support.rows.catalog import make_catalog
from tests.support.servers.certificates import self_signed, server_context
from tests.support.upstream import upstream_responses as answers
from tests.support.upstream.odd_responses import GOOD, WELL, body_with, prompt_in
from tests.support.upstream.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from pytest_django import Settings

pytestmark = pytest.mark.django_db

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@contextlib.contextmanager
def tls_upstream(directory: Path, *, address: str = "127.0.0.1", trusted: bool) -> Iterator[Upstream]:
    certificate = self_signed(directory, address=address)
    if trusted:
        connection_pool.tls_context().load_verify_locations(certificate)
    with Upstream(tls=server_context(certificate)) as upstream:
        yield upstream


def refused(catalog: SimpleNamespace) -> str:
    outcome = send(call_of(catalog))
    assert outcome.failure is not None
    assert outcome.failure.code == "upstream_unreachable"
    assert (outcome.sent, outcome.keys_tried) == (False, 0)
    return outcome.failure.message


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections serve again without a while of silence."""
    monkeypatch.setattr(idle_connections, "MIN_IDLE_SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_trusted_certificate_is_accepted_and_the_connection_kept(tmp_path: Path) -> None:
    with tls_upstream(tmp_path, trusted=True) as upstream:
        catalog = make_catalog(upstream.url)
        assert send(call_of(catalog)).failure is None
        assert send(call_of(catalog)).failure is None
        assert [request.connection for request in upstream.requests] == [1, 1]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "name", ["an answer behind it", "an answer behind it, later", "103 earlier", "twice"]
)
def test_over_tls_too_nobody_reads_an_answer_to_another_call(tmp_path: Path, name: str) -> None:
    with tls_upstream(tmp_path, trusted=True) as upstream:
        catalog = make_catalog(upstream.url)
        upstream.script(GOOD[name])
        upstream.handler = lambda _: WELL
        said = []
        for words in ("first", "second", "third"):
            outcome = send(call_of(catalog, body=body_with(words)))
            upstream.wait_for(lambda up: up.in_flight == 0)
            said.append(prompt_in(outcome.body))

        assert said == ["first", "second", "third"]
        assert [request.connection for request in upstream.requests][:2] == [1, 2]


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    with tls_upstream(tmp_path, trusted=False) as upstream:
        assert "not trusted" in refused(make_catalog(upstream.url))
        assert upstream.requests == []


def test_a_certificate_for_another_address_is_refused(tmp_path: Path) -> None:
    with tls_upstream(tmp_path, address="127.0.0.9", trusted=True) as upstream:
        assert "not trusted" in refused(make_catalog(upstream.url))
        assert upstream.requests == []


def test_two_handshakes_that_break_are_redialled_with_the_same_key(tmp_path: Path) -> None:
    with tls_upstream(tmp_path, trusted=True) as upstream:
        upstream.broken_handshakes = 2
        outcome = send(call_of(make_catalog(upstream.url, host_key_values=("one", "two"))))

        assert outcome.failure is None
        assert outcome.keys_tried == 1
        assert upstream.connections == 3
        assert [request.credential for request in upstream.requests] == ["one"]


def test_an_abort_ends_a_call_over_tls(tmp_path: Path) -> None:
    with tls_upstream(tmp_path, trusted=True) as upstream:
        upstream.script(answers.held(threading.Event()))
        call = call_of(make_catalog(upstream.url))
        Aborter(
            call.abort_handle,
            reason="cancelled",
            when=lambda: upstream.wait_for(lambda up: up.in_flight == 1),
        )
        outcome = send(call)

    assert outcome.failure is not None
    assert outcome.failure.code == "cancelled"


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[fe80::1]",
        "[febf::1]",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:1]",
        "[::169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[fd00:ec2::254]",
        "[fd20:ce::254]",
        "2852039166",
        "0xa9fea9fe",
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_link_local_addresses_are_refused_in_every_spelling(scheme: str, host: str) -> None:
    assert "link-local" in refused(make_catalog(f"{scheme}://{host}:9"))


@pytest.mark.parametrize(
    "base_url",
    [
        "ftp://127.0.0.1",
        "127.0.0.1:80",
        "http://",
        "http://[::1",
        "http://" + "a" * 70,
        "http://a..b",
        "http://x:99999",
    ],
)
def test_a_base_url_that_means_nothing_is_a_failure_like_another(base_url: str) -> None:
    assert "upstream unreachable" in refused(make_catalog(base_url))


@pytest.mark.usefixtures("at_once")
def test_a_connection_that_lay_idle_for_more_than_four_seconds_is_not_used(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = make_catalog(upstream.url)
    send(call_of(catalog))
    send(call_of(catalog))
    assert upstream.connections == 1

    monkeypatch.setattr(idle_connections, "MAX_IDLE_SECONDS", 0.0)
    send(call_of(catalog))
    assert upstream.connections == 2


def test_connections_of_failed_calls_leave_no_descriptor_behind(upstream: Upstream) -> None:
    catalog = make_catalog(upstream.url)
    upstream.handler = lambda _: answers.reset()

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    send(call_of(catalog))
    upstream.wait_for(lambda up: up.open_connections == 0)
    before = descriptors()
    for _ in range(10):
        send(call_of(catalog))
    upstream.wait_for(lambda up: up.open_connections == 0)

    assert descriptors() <= before + 2


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """Stands in for a proxy: plain HTTP is asked with the whole URL."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with Upstream() as running:
        monkeypatch.setenv("HTTP_PROXY", running.url)
        yield running


def test_the_environments_proxies_are_used_only_when_the_setting_says_so(
    proxy: Upstream, settings: Settings
) -> None:
    catalog = make_catalog("http://upstream.invalid/")
    assert "resolved" in refused(catalog)
    assert proxy.requests == []

    settings.RELAY_TRUST_ENV_PROXIES = True
    assert send(call_of(catalog)).failure is None
    assert [request.path for request in proxy.requests] == ["http://upstream.invalid/v1/chat/completions"]


def test_a_link_local_address_is_refused_also_with_a_proxy(proxy: Upstream, settings: Settings) -> None:
    settings.RELAY_TRUST_ENV_PROXIES = True

    assert "link-local" in refused(make_catalog("http://169.254.169.254"))
    assert proxy.requests == []


@pytest.mark.usefixtures("at_once")
def test_tls_goes_through_a_proxys_tunnel(
    tmp_path: Path, proxy: Upstream, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RELAY_TRUST_ENV_PROXIES = True
    with tls_upstream(tmp_path, trusted=True) as upstream, tunnel() as (url, connects):
        monkeypatch.setenv("HTTPS_PROXY", url)
        catalog = make_catalog(upstream.url)
        assert send(call_of(catalog)).failure is None
        assert send(call_of(catalog)).failure is None

        assert connects == [f"CONNECT 127.0.0.1:{upstream.port}"]
        assert upstream.requests[0].path == "/v1/chat/completions"

        monkeypatch.setenv("HTTPS_PROXY", proxy.url)  # answers CONNECT with 404
        resolve.clear_cache()
        assert "unreachable" in refused(catalog)


@contextlib.contextmanager
def tunnel() -> Iterator[tuple[str, list[str]]]:
    """A proxy that knows CONNECT. The list fills with what it was asked."""
    connects: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    near, _ = listener.accept()
                    with near.makefile("rb") as stream:
                        line = stream.readline().decode()
                        while stream.readline() not in (b"\r\n", b""):
                            pass
                    connects.append(line.rsplit(" ", 1)[0])
                    host, _, port = line.split(" ")[1].partition(":")
                    far = socket.create_connection((host, int(port)))
                    near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                    for source, sink in ((near, far), (far, near)):
                        threading.Thread(target=pump, args=(source, sink), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", connects
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
    source.close()


@pytest.mark.parametrize("words", [1, 8_000])
def test_a_request_that_is_not_large_leaves_in_one_write(words: int) -> None:
    """An upstream that reads once has all of it."""
    body = json.dumps(
        {"model": "echo-1", "messages": [{"role": "user", "content": "word " * words}]}
    ).encode()
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        found = make_catalog(f"http://127.0.0.1:{listener.getsockname()[1]}")
        received = pool.submit(read_once_and_answer, listener)
        assert send(call_of(found, body=body)).status == 404
        head, _, sent = received.result(10).partition(b"\r\n\r\n")
    assert sent == body
    assert f"content-length: {len(body)}" in head.decode().lower()


def read_once_and_answer(listener: socket.socket) -> bytes:
    connection, _ = listener.accept()
    with connection:
        received = connection.recv(1 << 20)
        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        return received
