"""A worker process keeps its database connections from one item to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_for_end

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment

pytestmark = pytest.mark.django_db(transaction=True)

SLOTS = 8


def sessions_so_far() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sessions FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def test_items_open_no_new_connections_to_the_database(
    deployment: Deployment, catalog: SimpleNamespace
) -> None:
    deployment.worker()
    wait_for_end(submit(catalog, *[chat_body(f"first {number}") for number in range(20)]))
    before = sessions_so_far()
    wait_for_end(submit(catalog, *[chat_body(f"second {number}") for number in range(60)]))
    # A slot that had no item of the first batch connects now; so may the threads that publish.
    assert sessions_so_far() - before <= SLOTS + 2
