"""Web processes on both kinds of stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.servers.web import web_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.servers.web import Web


@pytest.fixture(scope="module")
def _web_on_postgres(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_process(tmp_path_factory.mktemp("postgres"), RELAY_BATCH_PAYLOAD_URL="postgres:") as web:
        yield web


@pytest.fixture(params=["directory", "postgres:"])
def store(request: pytest.FixtureRequest, transactional_db: None) -> Web:
    """With `postgres:` the content takes connections to the database, beside the locks'."""
    name = "web" if request.param == "directory" else "_web_on_postgres"
    process: Web = request.getfixturevalue(name)
    return process
