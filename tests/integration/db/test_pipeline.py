"""A lock and a statement in one round trip: what holds of them together."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
import pytest
from django.db import IntegrityError, InternalError, connection, transaction

from batches.models import Owner
from batches.models.owner import LOCK_OWNER
from relaybatch.db.pipeline import execute_pipelined, execute_prepared, execute_under_lock, raw_connection
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

LOCK = "SELECT pg_advisory_xact_lock(%s)"
_ADD_OWNER = "INSERT INTO batches_owner (name) VALUES (%(name)s) RETURNING name"
_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture
def owner() -> Owner:
    return Owner.objects.create(name="first")


def test_it_returns_the_statements_rows_and_commits() -> None:
    assert execute_under_lock(LOCK, 7, (_ADD_OWNER, {"name": "somebody"})) == [("somebody",)]
    assert not connection.in_atomic_block
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK")
    assert Owner.objects.filter(name="somebody").exists()


def test_the_lock_is_released_with_the_commit() -> None:
    execute_under_lock(LOCK, 7, (_ADD_OWNER, {"name": "somebody"}))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7")
        assert cursor.fetchone()[0] == 0


def test_a_statement_that_fails_leaves_nothing_and_the_connection_works(owner: Owner) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation):
        execute_under_lock(LOCK, 7, (_ADD_OWNER, {"name": owner.name}))
    assert execute_under_lock(LOCK, 7, (_ADD_OWNER, {"name": "second"})) == [("second",)]
    assert Owner.objects.count() == 2


def test_the_statement_sees_what_was_committed_while_it_waited_for_the_lock(owner: Owner) -> None:
    with ThreadPoolExecutor(1) as threads, _other_session() as other:
        other.execute(LOCK_OWNER, [owner.id])
        other.execute("UPDATE batches_owner SET name = 'renamed' WHERE id = %s", [owner.id])
        waiting = threads.submit(_on_a_thread, lambda: _names_under_lock(owner.id))
        wait_until(_somebody_waits, lambda: "nobody waits for the lock")
        other.commit()
        assert waiting.result(timeout=20) == [("renamed",)]


def _names_under_lock(owner_id: int) -> list[tuple[Any, ...]]:
    return execute_under_lock(LOCK_OWNER, owner_id, ("SELECT name FROM batches_owner", {}))


def test_djangos_execute_wrappers_are_called_and_may_refuse() -> None:
    statements: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    connection.ensure_connection()
    with connection.execute_wrapper(note):
        execute_under_lock(LOCK, 7, (_ADD_OWNER, {"name": "somebody"}))
    assert statements == [_ADD_OWNER]

    def refuse(*_: Any) -> Any:
        raise RuntimeError("no statement here")

    with connection.execute_wrapper(refuse), pytest.raises(RuntimeError):
        execute_under_lock(LOCK, 7, (_ADD_OWNER, {"name": "another"}))
    assert not Owner.objects.filter(name="another").exists()


def test_raw_connection_connects_when_there_is_none() -> None:
    connection.close()
    assert raw_connection().execute("SELECT 1").fetchone() == (1,)


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING)
        return bool(cursor.fetchone()[0])


def _on_a_thread(call: Callable[[], Any]) -> Any:
    try:
        return call()
    finally:
        connection.close()


class _other_session:  # noqa: N801 -- used as a context manager
    """A session beside Django's, whose transaction is open until it is committed or closed."""

    def __enter__(self) -> psycopg.Connection[Any]:
        values = connection.get_connection_params()
        self._connection = psycopg.connect(
            **{
                name: values[name]
                for name in ("dbname", "user", "password", "host", "port")
                if name in values
            }
        )
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def test_publishing_alone_does_not_wait_for_the_disk() -> None:
    owner = Owner.objects.create(name="somebody")
    setting: LiteralString = "SELECT current_setting('synchronous_commit')"
    assert execute_under_lock(LOCK_OWNER, owner.id, (setting, {})) == [("off",)]
    assert execute_prepared(setting, []) == [("on",)]


def test_statements_in_one_trip_see_each_other_and_are_rolled_back_together() -> None:
    insert: LiteralString = "INSERT INTO batches_owner (name) VALUES (%s)"
    count: LiteralString = "SELECT count(*) FROM batches_owner"
    with transaction.atomic():
        assert execute_pipelined([(insert, ["somebody"]), (count, [])]) == [[], [(1,)]]
        transaction.set_rollback(True)
    with pytest.raises(IntegrityError), transaction.atomic():
        execute_pipelined([(insert, ["somebody"]), (insert, ["somebody"]), (count, [])])
    assert not Owner.objects.exists()


def test_a_process_that_hangs_after_a_pipeline_loses_its_session_with_its_locks(settings: Settings) -> None:
    connection.close()
    settings.RELAY_WORKER_LOST_S = 1
    with pytest.raises(InternalError, match="idle-in-transaction"), transaction.atomic():  # noqa: PT012
        execute_pipelined([("SELECT 1", []), ("SELECT 2", [])])
        time.sleep(2)
        execute_prepared("SELECT 3", [])
    connection.close()
