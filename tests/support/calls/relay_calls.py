"""Reading calls of Relay's dialect, and who makes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client

    from batches.models import Batch


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def get(client: Client, rows: SimpleNamespace, path: str, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(f"/v1/batches{path}", headers=rows.headers | named)


def status_of(client: Client, rows: SimpleNamespace, batch: Batch, query: str = "") -> dict[str, Any]:
    response = get(client, rows, f"/{batch.id}{query}")
    assert response.status_code == 200
    status: dict[str, Any] = json.loads(response.getvalue())
    return status


def results_of(client: Client, rows: SimpleNamespace, batch: Batch, query: str = "") -> list[dict[str, Any]]:
    response = get(client, rows, f"/{batch.id}/results{query}")
    assert response.status_code == 200
    results: list[dict[str, Any]] = json.loads(response.getvalue())["results"]
    return results


def error_of(response: Any) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(response.getvalue())["error"]
    return error
