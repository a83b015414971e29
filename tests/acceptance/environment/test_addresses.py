"""Every address may be an IPv6 one, the database's also a unix socket; the web server listens on IPv4 and IPv6."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest
from django.conf import settings
from django.db import connection

from batches.models import Batch
from relaybatch.quickstart.servers.processes import free_port
from relaybatch.server.bind_addresses import LOOPBACK, usable_binds
from tests.support.proxies.forwarding import forward_ipv6_port, forward_unix_socket
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body
from tests.support.servers.deployment import ROOT, deployment_environment, wait_for_end, wait_until
from tests.support.servers.web import Reply, reply_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.servers.deployment import Deployment, Process
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)
WITHOUT_IPV6 = str(ROOT / "tests" / "support" / "without_ipv6")
needs_ipv6 = pytest.mark.skipif(len(usable_binds(LOOPBACK, port=0)) < 2, reason="this machine has no IPv6")
ONE_WORKER = "--workers=1 --threads=8"


def web_on(deployment: Deployment, port: int, **environment: str) -> Process:
    """Start a web process with `PORT` alone, as a deployment does."""
    web = deployment.start("web", PORT=str(port), GUNICORN_CMD_ARGS=ONE_WORKER, **environment)
    wait_until(lambda: not web.is_alive or is_up("127.0.0.1", port), web.log)
    assert web.is_alive, web.log()
    return web


def is_up(host: str, port: int) -> bool:
    with contextlib.suppress(OSError):
        return call(host, port, "/healthz").status == 200
    return False


def call(host: str, port: int, path: str, *, body: bytes | None = None, **headers: str) -> Reply:
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=30)) as client:
        client.request("POST" if body else "GET", path, body=body, headers=headers)
        return reply_of(client.getresponse())


@needs_ipv6
def test_the_web_server_listens_on_ipv4_and_ipv6(deployment: Deployment) -> None:
    port = free_port()
    web = web_on(deployment, port, ALLOWED_HOSTS="::1")
    assert call("::1", port, "/healthz").status == 200
    assert call("::1", port, "/admin/login/").status == 200
    assert call("127.0.0.1", port, "/admin/login/").status == 400
    assert "in use" not in web.log()


def test_without_ipv6_it_listens_on_ipv4(deployment: Deployment) -> None:
    web = web_on(deployment, free_port(), PYTHONPATH=WITHOUT_IPV6)
    assert "[::]" not in web.log()


@needs_ipv6
def test_everything_may_be_reached_by_ipv6(deployment: Deployment, upstream: Upstream) -> None:
    redis = urlsplit(settings.REDIS_URL)
    with (
        forward_ipv6_port(port=int(connection.settings_dict["PORT"])) as postgres_port,
        forward_ipv6_port(port=int(redis.port or 0)) as redis_port,
        forward_ipv6_port(port=int(urlsplit(upstream.url).port or 0)) as upstream_port,
    ):
        database = urlsplit(deployment_environment()["DATABASE_URL"])
        addresses = {
            name: parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@[::1]:{port}").geturl()
            for name, parts, port in (
                ("DATABASE_URL", database, postgres_port),
                ("REDIS_URL", redis, redis_port),
            )
        }
        catalog = make_catalog(f"http://[::1]:{upstream_port}")
        port = free_port()
        processes = [
            web_on(deployment, port, **addresses),
            deployment.worker(ready=True, **addresses),
            deployment.sweeper(**addresses),
        ]
        body = b'{"shape":"openai","requests":[' + b",".join([chat_body()] * 5) + b"]}"
        created = call("::1", port, "/v1/batches", body=body, **catalog.headers)
        batch = Batch.objects.get(id=created.json["id"])
        wait_for_end(batch)
        assert batch.final_counts == {"completed": 5}
        assert call("::1", port, "/readyz").status == 200
        for process in processes:
            process.kill()
    assert {request.headers["host"] for request in upstream.requests} == {f"[::1]:{upstream_port}"}


@pytest.mark.parametrize("form", ["{folder}:{port}", ":{port}"])
def test_the_database_may_be_a_unix_sockets_folder(form: str, tmp_path: Path) -> None:
    entry = connection.settings_dict
    folder = tmp_path / "A folder"
    folder.mkdir()
    place = form.format(folder=quote(str(folder), safe=""), port=entry["PORT"])
    url = f"postgresql://{entry['USER']}:{entry['PASSWORD']}@{place}/{entry['NAME']}"
    if not place.startswith("%2F"):
        url += f"?host={quote(str(folder))}"
    with forward_unix_socket(folder / f".s.PGSQL.{entry['PORT']}", port=int(entry["PORT"])):
        done = subprocess.run(
            [sys.executable, "manage.py", "check_usage", "--json"],
            cwd=ROOT,
            env=deployment_environment() | {"DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
