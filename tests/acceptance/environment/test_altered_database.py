"""With unusual defaults of the database's sessions, every route, the worker and the sweeper work."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import connection
from psycopg.sql import SQL, Identifier

from batches.models import Batch
from tests.support.rows.submissions import chat_body
from tests.support.servers.deployment import deployment_environment, wait_for_end
from tests.support.servers.web import web_process
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

OTHERWISE = {
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kolkata",
    "search_path": "other",
    "default_transaction_isolation": "serializable",
    "bytea_output": "escape",
    "standard_conforming_strings": "off",
    "client_encoding": "latin1",
}
TOKEN = "an-operators-token"
ITEMS = 20


@pytest.fixture
def _altered(transactional_db: None) -> Iterator[None]:
    """Alter the database for new sessions; this test's own session is unchanged."""
    name = Identifier(connection.settings_dict["NAME"])
    url = deployment_environment()["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as server, contextlib.ExitStack() as closing:
        closing.callback(server.execute, SQL("ALTER DATABASE {} RESET ALL").format(name))
        for setting, value in OTHERWISE.items():
            statement = SQL("ALTER DATABASE {} SET {} TO {}").format(name, Identifier(setting), value)
            server.execute(statement)
        yield


@pytest.mark.usefixtures("_altered")
def test_everything_works(
    deployment: Deployment,
    catalog: SimpleNamespace,
    upstream: Upstream,
    tmp_path: Path,
) -> None:
    upstream.handler = lambda request: answers.status(400) if b"wrong" in request.body else answers.usable()
    with web_process(tmp_path, RELAY_ADMIN_TOKEN=TOKEN) as web:
        deployment.worker()
        sweeper = deployment.sweeper()
        batch = submitted(web, catalog)
        wait_for_end(batch)
        assert batch.final_counts == {"completed": ITEMS, "discarded": 1}
        for path in read_by_callers(batch):
            assert web.call("GET", path, headers=catalog.headers).status == 200, path
        for path in ("/api/usage/events", "/api/usage/summary", "/api/usage/timeseries?interval=1m"):
            headers = {"Authorization": f"Bearer {TOKEN}"}
            assert web.call("GET", path, headers=headers).status == 200, path
        assert web.call("GET", "/readyz").status == 200, web.log()
        retried = web.call("POST", f"/v1/batches/{batch.id}/retry", headers=catalog.headers)
        assert retried.status == 202, retried.body
        assert web.call("DELETE", f"/v1/batches/{batch.id}", headers=catalog.headers).status < 500
        assert sweeper.is_alive, sweeper.log()


def submitted(web: Web, catalog: SimpleNamespace) -> Batch:
    bodies = b",".join([*[chat_body("'\\' 青空")] * ITEMS, chat_body("wrong")])
    headers = catalog.headers | {"Idempotency-Key": "once"}
    body = b'{"shape":"openai","requests":[' + bodies + b"]}"
    first, again = (web.call("POST", "/v1/batches", headers=headers, body=body) for _ in range(2))
    assert (first.status, json.loads(first.body)["id"]) == (202, again.json["id"]), first.body
    return Batch.objects.get(id=first.json["id"])


def read_by_callers(batch: Batch) -> list[str]:
    return [
        "/v1/batches",
        f"/v1/batches/{batch.id}",
        f"/v1/batches/{batch.id}/results?include=usage",
        "/v1/models",
        "/v1/usage/events",
        "/v1/usage/summary",
        "/v1/usage/included",
        "/v1/messages/batches",
    ]
