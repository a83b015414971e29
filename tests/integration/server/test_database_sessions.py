"""Our sessions set what they need, whatever defaults a database or a role has for its other users."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from relaybatch.conf.database_url import database_from_url
from tests.support.servers.deployment import deployment_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

pytestmark = pytest.mark.django_db(transaction=True)


@contextlib.contextmanager
def altered(name: str, value: str) -> Iterator[None]:
    """Alter the database for new sessions, so not for this test's own."""
    database = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {database} SET {name} TO {value}")
        try:
            yield
        finally:
            cursor.execute(f"ALTER DATABASE {database} RESET {name}")


@contextlib.contextmanager
def new_session(query: str = "") -> Iterator[BaseDatabaseWrapper]:
    other = connection.copy()
    entry = database_from_url(deployment_environment()["DATABASE_URL"] + query)
    other.settings_dict |= {"OPTIONS": entry["OPTIONS"]}
    with contextlib.closing(other):
        yield other


def setting_of(name: str, query: str = "") -> str:
    with new_session(query) as session, session.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [name])
        return str(cursor.fetchone()[0])


@pytest.mark.parametrize(
    ("name", "value", "ours"),
    [
        ("DateStyle", "'SQL, DMY'", "ISO, MDY"),
        ("IntervalStyle", "sql_standard", "postgres"),
        ("TimeZone", "'Asia/Kolkata'", "UTC"),
        ("search_path", "other", '"$user", public'),
        ("default_transaction_isolation", "'serializable'", "read committed"),
        ("bytea_output", "escape", "hex"),
        ("client_encoding", "latin1", "UTF8"),
        ("standard_conforming_strings", "off", "on"),
    ],
)
def test_a_session_has_what_it_needs_whatever_the_database_says(name: str, value: str, ours: str) -> None:
    with altered(name, value):
        assert setting_of(name) == ours


@pytest.mark.parametrize(
    "query",
    [
        "?options=-c%20search_path%3Dother",
        "?options=-csearch_path%3Dother",
        "?options=--search-path%3Dother",
        "?options=-c%20jit%3Doff%20-c%20SEARCH_PATH%3Dother",
    ],
)
def test_the_search_path_that_the_address_names_stays(query: str) -> None:
    assert setting_of("search_path", query) == "other"


def test_a_transaction_is_read_committed_whatever_the_session_says() -> None:
    """As behind a pooler that gives each transaction another session."""
    with new_session() as session, session.cursor() as cursor:
        cursor.execute("SET default_transaction_isolation TO 'serializable'")
        session.set_autocommit(False)
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("read committed",)
        session.rollback()
