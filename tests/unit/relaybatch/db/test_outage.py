"""Which errors of PostgreSQL are an outage, and are waited out: what the server is, and not what it was asked."""

from __future__ import annotations

import psycopg
import pytest
from django.db import DatabaseError, connection

from relaybatch.db.outage import DATABASE_UNAVAILABLE

OUTAGES = {
    "08006": "the connection broke",
    "25006": "read-only after a failover",
    "28P01": "a new password",
    "40P01": "a deadlock",
    "53100": "disk full",
    "53200": "out of memory",
    "53300": "too many connections",
    "55000": "not in the right state: recovering, or closed to connections",
    "57014": "cancelled, by the server's own time-out too",
    "57P01": "shutting down",
    "57P02": "another session crashed the server",
    "57P03": "starting up",
    "57P04": "the database was dropped",
    "57P05": "the session was idle for too long",
    "58030": "the disk does not read or write",
    "XX000": "an internal error",
    "XX001": "a page is broken",
}
FAULTS = {"22003": "a number out of range", "23505": "there twice", "42601": "not SQL"}


def raised(code: str) -> tuple[Exception, Exception]:
    """As psycopg raises it, and as Django's cursors do."""
    error = psycopg.errors.lookup(code)("told")
    with pytest.raises(DatabaseError) as wrapped, connection.wrap_database_errors:
        raise error
    return error, wrapped.value


@pytest.mark.parametrize("code", OUTAGES, ids=lambda code: OUTAGES[code])
def test_is_waited_out(code: str) -> None:
    assert all(isinstance(error, DATABASE_UNAVAILABLE) for error in raised(code))


@pytest.mark.parametrize("code", FAULTS, ids=lambda code: FAULTS[code])
def test_is_not_waited_out(code: str) -> None:
    assert not any(isinstance(error, DATABASE_UNAVAILABLE) for error in raised(code))
