from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from batches.payloads import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)
ALL_OK = {"database": "ok", "migrations": "ok", "redis": "ok", "payload_store": "ok"}


def ready(client: Client, expected: int) -> dict[str, Any]:
    response = client.get("/readyz")
    assert response.status_code == expected
    checks: dict[str, Any] = json.loads(response.content)["checks"]
    return checks


def test_a_process_that_is_up_says_so_and_asks_nobody(client: Client) -> None:
    assert json.loads(client.get("/healthz").content) == {"status": "ok"}


def test_a_deployment_that_is_whole_is_ready(client: Client) -> None:
    assert ready(client, 200) == ALL_OK


def test_redis_that_is_away_is_named(client: Client, settings: Settings) -> None:
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


def test_a_migration_that_is_not_applied_is_named(client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, app, name, applied FROM django_migrations WHERE app = 'batches' ORDER BY id DESC"
        )
        row = cursor.fetchone()
        cursor.execute("DELETE FROM django_migrations WHERE id = %s", [row[0]])
    try:
        assert "migrate" in ready(client, 503)["migrations"]
    finally:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO django_migrations (id, app, name, applied) VALUES (%s, %s, %s, %s)", row
            )


def test_a_database_that_takes_no_writes_is_named(client: Client) -> None:
    """As a standby does; for new sessions only, so not for this test's own."""
    assert ready(client, 200) == ALL_OK
    with connection.cursor() as cursor:
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            assert ready(client, 503) == ALL_OK | {"database": "takes no writes"}
        finally:
            cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert ready(client, 200) == ALL_OK
