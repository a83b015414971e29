"""The health endpoints: a process that runs is healthy, and ready once all that it needs responds."""

from __future__ import annotations

import contextlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import connection

from batches.payloads import open_store
from relaybatch.db.connection import POOL
from relaybatch.readiness import READINESS
from tests.support.proxies.database_proxy import DatabaseProxy
from tests.support.servers.deployment import deployment_environment, wait_until
from tests.support.servers.few_connections import count_sessions, limited_account
from tests.support.servers.web import web_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from django.test import Client
    from pytest_django import Settings

    from tests.support.servers.web import Web

pytestmark = pytest.mark.django_db(transaction=True)
ALL_OK = {"database": "ok", "migrations": "ok", "redis": "ok", "payload_store": "ok"}


def ready(client: Client, expected: int) -> dict[str, Any]:
    READINESS.clear_cache()
    response = client.get("/readyz")
    assert response.status_code == expected
    checks: dict[str, Any] = json.loads(response.content)["checks"]
    return checks


def test_a_process_that_is_up_says_so_and_asks_nobody(client: Client) -> None:
    assert json.loads(client.get("/healthz").content) == {"status": "ok"}


def test_a_deployment_that_is_whole_is_ready(client: Client) -> None:
    assert ready(client, 200) == ALL_OK


def test_redis_that_is_unavailable_is_named(client: Client, settings: Settings) -> None:
    settings.REDIS_URL = "redis://:secret@127.0.0.1:1/0"
    assert ready(client, 503) == ALL_OK | {"redis": "does not answer"}


@pytest.mark.parametrize(
    ("name", "form"), [("RELAY_BATCH_PAYLOAD_DIR", "{}"), ("RELAY_BATCH_PAYLOAD_URL", "file://{}")]
)
def test_another_payload_store_than_the_deployments_is_named(
    client: Client, settings: Settings, tmp_path: Path, name: str, form: str
) -> None:
    assert ready(client, 200) == ALL_OK
    setattr(settings, name, form.format(tmp_path / "other"))
    open_store()
    checks = ready(client, 503)
    assert checks.pop("payload_store") == "the payload store has lost its marker: is the volume mounted?"
    assert set(checks.values()) == {"ok"}
    shutil.rmtree(tmp_path / "other")


@contextlib.contextmanager
def a_migration_less() -> Iterator[None]:
    with psycopg.connect(deployment_environment()["DATABASE_URL"], autocommit=True) as server:
        row = server.execute(
            "DELETE FROM django_migrations WHERE id = (SELECT max(id) FROM django_migrations WHERE app = 'batches')"
            " RETURNING id, app, name, applied"
        ).fetchone()
        try:
            yield
        finally:
            server.execute(
                "INSERT INTO django_migrations (id, app, name, applied) VALUES (%s, %s, %s, %s)", row
            )


@contextlib.contextmanager
def new_sessions_read_only() -> Iterator[None]:
    """As on a standby."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with psycopg.connect(deployment_environment()["DATABASE_URL"], autocommit=True) as server:
        server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        POOL.close_all()
        try:
            yield
        finally:
            server.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
            connection.close()
            POOL.close_all()


def test_a_migration_that_is_not_applied_is_named(client: Client) -> None:
    with a_migration_less():
        assert "migrate" in ready(client, 503)["migrations"]
    assert ready(client, 200) == ALL_OK


def test_applied_migrations_are_looked_for_until_they_are_seen(client: Client) -> None:
    assert json.loads(client.get("/readyz").content)["checks"] == ALL_OK
    with a_migration_less(), new_sessions_read_only():
        wait_until(
            lambda: (
                json.loads(client.get("/readyz").content)["checks"]
                == ALL_OK | {"database": "takes no writes"}
            ),
            lambda: "the checks did not run again",
        )


def test_a_database_that_takes_no_writes_is_named(client: Client) -> None:
    assert ready(client, 200) == ALL_OK
    with new_sessions_read_only():
        assert ready(client, 503) == ALL_OK | {"database": "takes no writes"}
    assert ready(client, 200) == ALL_OK


@pytest.fixture
def proxy() -> Iterator[DatabaseProxy]:
    with DatabaseProxy() as proxy:
        yield proxy


def checks_of(web: Web) -> dict[str, Any]:
    checks: dict[str, Any] = web.call("GET", "/readyz").json["checks"]
    return checks


def test_the_checks_take_one_session_and_leave_none(tmp_path: Path) -> None:
    with limited_account(1) as url, web_process(tmp_path, DATABASE_URL=url) as web:
        for _ in range(2):
            wait_until(lambda: checks_of(web) == ALL_OK, web.log)
            wait_until(lambda: not count_sessions(url), web.log)


def test_concurrent_requests_share_one_run_of_the_checks(tmp_path: Path, proxy: DatabaseProxy) -> None:
    """As many as a web process has threads. The database hangs, so that none is done before the last one asks."""
    with web_process(tmp_path, DATABASE_URL=proxy.url) as web:
        proxy.stop_responding()
        before = proxy.accepted
        with ThreadPoolExecutor(8) as callers:
            answers = [callers.submit(checks_of, web) for _ in range(8)]
        in_time = "does not answer in time"
        expected = ALL_OK | {"database": in_time, "migrations": in_time, "payload_store": in_time}
        assert [answer.result() for answer in answers] == [expected] * 8
        assert proxy.accepted == before + 1


def test_a_database_that_fell_silent_is_ready_when_another_answers_in_its_place(
    tmp_path: Path, proxy: DatabaseProxy
) -> None:
    """The first database never answers what it was asked."""
    with web_process(tmp_path, DATABASE_URL=proxy.url) as web:
        assert checks_of(web) == ALL_OK
        proxy.stop_responding()
        wait_until(lambda: checks_of(web)["database"] == "does not answer in time", web.log)
        proxy.forward_new_connections()
        wait_until(lambda: checks_of(web) == ALL_OK, web.log)
