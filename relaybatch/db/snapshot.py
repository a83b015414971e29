"""Consistent reads: all queries of one response see the same instant."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from django.db import connection, transaction
from psycopg import IsolationLevel

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def one_snapshot() -> Iterator[None]:
    """Read everything within as of the first query (REPEATABLE READ, read only).

    Never around network, sleep, or a client that reads: PostgreSQL keeps all dead rows since that moment. Within a
    transaction it does nothing: that one has begun, with an isolation level of its own.
    """
    if connection.in_atomic_block:
        yield
        return
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    raw = connection.connection
    before = raw.isolation_level, raw.read_only
    # They are part of the BEGIN itself, where SET TRANSACTION would be a round trip of its own.
    raw.isolation_level, raw.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        with transaction.atomic():
            yield
    finally:
        if not raw.closed:
            raw.isolation_level, raw.read_only = before
