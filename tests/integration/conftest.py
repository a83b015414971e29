from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.db import connection

from relaybatch.readiness import READINESS
from tests.support.calls.relay_calls import rows
from tests.support.calls.usage_calls import admin_token, caller
from tests.support.rows.gate_state import clear_gate
from tests.support.run.conformance import check_client_responses
from tests.support.servers.deployment import wait_until
from tests.support.servers.web import Web, web_process

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["admin_token", "caller", "rows"]  # fixtures of several files

# An owner whose items wait while none is out is about to be published for; a session that is not idle is at work.
_AT_WORK = """
SELECT EXISTS (SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        AND state <> 'idle')
OR EXISTS (SELECT FROM batches_batchitem GROUP BY owner_id
    HAVING count(*) FILTER (WHERE state = 'available' AND published_at IS NULL) > 0
        AND count(*) FILTER (WHERE state = 'running' OR published_at IS NOT NULL) = 0)
"""


@pytest.fixture(autouse=True)
def _closed_breakers_and_unused_limits() -> None:
    """Host keys of the same value share a breaker, in every test."""
    clear_gate()


@pytest.fixture(autouse=True)
def _nothing_known_of_readiness() -> None:
    """A look is good for a second, over the end of a test."""
    READINESS.clear_cache()


@pytest.fixture(autouse=True)
def _answers_are_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    check_client_responses(monkeypatch)


@pytest.fixture(scope="session")
def _web_of_the_run(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One process for all tests: it holds nothing that a test could leave behind."""
    limit = str(settings.RELAY_MAX_REQUEST_BYTES)  # for every dialect: tests send bodies over it
    with web_process(tmp_path_factory.mktemp("web"), RELAY_CUSTOM_ID_MAX_REQUEST_BYTES=limit) as web:
        yield web


@pytest.fixture
def web(transactional_db: None, _web_of_the_run: Web) -> Iterator[Web]:
    yield _web_of_the_run
    # The tables are emptied next, which must not meet the process while it publishes.
    wait_until(lambda: not _is_at_work(), _web_of_the_run.log)


def _is_at_work() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_AT_WORK)
        return bool(cursor.fetchone()[0])
