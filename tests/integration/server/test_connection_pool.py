"""Idle database connections are shared by the threads of a process, and then left to other processes."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from relaybatch.db import connection as connection_pool
from relaybatch.db.connection import POOL, ConnectionPool, release_connection
from relaybatch.db.postgresql.base import DatabaseWrapper, is_server_full
from tests.support.servers.deployment import wait_until
from tests.support.servers.few_connections import count_sessions, limited_account

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def spares(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start without idle connections, and keep those of this test until they are used."""
    connection.close()
    monkeypatch.setattr(connection_pool, "MAX_IDLE_SECONDS", 3600.0)
    monkeypatch.setattr(connection_pool, "SERVER_FULL_SECONDS", 0.0)
    yield
    POOL.close_all()


@contextlib.contextmanager
def threads_of(url: str, count: int) -> Iterator[list[DatabaseWrapper]]:
    """Database wrappers with open connections, each as if it belonged to another thread."""
    account = psycopg.conninfo.conninfo_to_dict(url)
    own = connection.settings_dict | {"USER": account["user"], "PASSWORD": account["password"]}
    wrappers = [DatabaseWrapper(dict(own), alias="default") for _ in range(count)]
    try:
        for wrapper in wrappers:
            wrapper.ensure_connection()
        yield wrappers
    finally:
        for wrapper in wrappers:
            wrapper.close()
        POOL.close_all()


def another(wrapper: DatabaseWrapper) -> DatabaseWrapper:
    return DatabaseWrapper(dict(wrapper.settings_dict), alias="default")


def server_process(wrapper: DatabaseWrapper) -> int:
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_what_one_thread_releases_the_next_one_acquires() -> None:
    with limited_account(2) as url, threads_of(url, 2) as (first, second):
        released = server_process(first)
        second.close()
        first.release_to_pool()
        assert server_process(second) == released
        assert server_process(first) != released


def test_nothing_is_released_within_a_transaction() -> None:
    connection.ensure_connection()
    with transaction.atomic():
        release_connection()  # before its first statement, with which the server's begins
        assert connection.connection is not None
        before = server_process(connection)  # type: ignore[arg-type]
        release_connection()
        assert connection.connection is not None
        assert server_process(connection) == before  # type: ignore[arg-type]


def test_nothing_is_held_while_a_client_takes_a_part_of_a_stream(client: Client, settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.support.servers.asgi"
    parts = iter(client.get("/stream").streaming_content)  # type: ignore[attr-defined]
    assert next(parts)
    assert connection.connection is None
    assert next(parts)


def test_one_that_was_cut_between_two_requests_is_not_met_by_the_next() -> None:
    with limited_account(2) as url, threads_of(url, 2) as (first, second):
        terminated = server_process(first)
        second.close()
        first.close_if_unusable_or_obsolete()  # as Django does after a request
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [terminated])
        assert server_process(second) != terminated


def last_statement(process: int) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [process])
        return str(cursor.fetchone()[0])


@pytest.mark.parametrize(("seconds", "expected"), [(3600.0, "SELECT pg_backend_pid()"), (0.0, "SELECT 1")])
def test_only_one_that_was_idle_for_long_is_asked_whether_it_works(
    monkeypatch: pytest.MonkeyPatch, seconds: float, expected: str
) -> None:
    monkeypatch.setattr(connection_pool, "MAX_UNCHECKED_SECONDS", seconds)
    with limited_account(2) as url, threads_of(url, 2) as (first, second):
        released = server_process(first)
        second.close()
        first.close_if_unusable_or_obsolete()
        second.ensure_connection()
        assert last_statement(released) == expected


def test_who_closes_one_that_is_useless_leaves_no_other_of_that_server_for_the_next() -> None:
    with limited_account(3) as url, threads_of(url, 3) as (first, second, third):
        released = server_process(first)
        second.close()
        first.release_to_pool()
        third.close()
        assert server_process(second) != released


def test_a_thread_that_is_refused_waits_for_what_another_releases() -> None:
    with limited_account(1) as url, threads_of(url, 1) as (first,):
        released = server_process(first)
        connection.close()  # the process has this one alone
        with ThreadPoolExecutor(1) as thread:
            served = thread.submit(_asked_once, first)
            wait_until(lambda: POOL.waiting == 1, lambda: "nobody waits")
            first.release_to_pool()
            assert served.result() == released


def _asked_once(like: DatabaseWrapper) -> int:
    second = another(like)
    try:
        return server_process(second)
    finally:
        second.close()


def test_a_server_that_stays_full_is_told_as_an_outage() -> None:
    with limited_account(1) as url, threads_of(url, 1) as (first,):
        second = another(first)
        with pytest.raises(OperationalError, match="too many connections"):
            second.ensure_connection()


def test_a_process_that_was_refused_goes_on_with_half_of_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "SERVER_FULL_SECONDS", 3600.0)
    with limited_account(4) as url, threads_of(url, 4) as wrappers:
        own = ConnectionPool()
        for wrapper in wrappers:
            own.record_opened(wrapper.connection)
        own.record_server_full()
        for wrapper in wrappers:
            own.release(wrapper.connection, database="-")
        wait_until(lambda: count_sessions(url) == 2, lambda: f"{count_sessions(url)}")
        assert not own.may_open()
        own.close_all()


def test_a_process_that_has_all_that_it_wants_leaves_one_to_others_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_pool, "MAX_AGE_SECONDS", 0.0)
    monkeypatch.setattr(connection_pool, "YIELD_SECONDS", 3600.0)
    with limited_account(2) as url, threads_of(url, 2) as (first, second):
        own = ConnectionPool()
        own.record_opened(first.connection)
        own.record_opened(second.connection)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        own.release(first.connection, database="-")
        wait_until(lambda: count_sessions(url) == 1, lambda: f"{count_sessions(url)}")
        psycopg.connect(url).close()
        own.release(second.connection, database="-")
        assert not own.may_open()
        assert not second.connection.closed
        own.close_all()


@pytest.mark.parametrize(
    "message",
    [
        "FATAL:  sorry, too many clients already",
        'FATAL:  too many connections for role "relaybatch"',
        'FATAL:  too many connections for database "relaybatch"',
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "FATAL:  no more connections allowed (max_client_conn)",
        "FATAL:  MaxClientsInSessionMode: max clients reached",
    ],
)
def test_a_server_without_room_is_known_by_its_message(message: str) -> None:
    assert is_server_full(psycopg.OperationalError(f"connection failed: {message}"))


@pytest.mark.parametrize(
    "message", ["Connection refused", 'FATAL:  password authentication failed for user "a"']
)
def test_another_rejection_is_not_waited_for(message: str) -> None:
    assert not is_server_full(psycopg.OperationalError(f"connection failed: {message}"))


def test_a_connection_that_is_kept_is_not_released_and_so_keeps_the_locks_of_its_session() -> None:
    connection.ensure_connection()
    raw = connection.connection
    with connection_pool.keep_connection():
        release_connection()
        connection.close_if_unusable_or_obsolete()
        assert connection.connection is raw
    release_connection()
    assert connection.connection is None
