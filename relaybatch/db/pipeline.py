"""psycopg's own cursors on Django's connection, for the statements of an item's path.

Parameters are bound by the server and statements prepared there; the ORM would cost more than half of the throughput.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

import psycopg
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Row = tuple[Any, ...]
    Values = Mapping[str, Any] | Sequence[Any]
    Statement = tuple[LiteralString, Values]


T = TypeVar("T")


def raw_connection() -> psycopg.Connection[tuple[Any, ...]]:
    connection.ensure_connection()
    raw: psycopg.Connection[tuple[Any, ...]] = connection.connection
    return raw


def execute_prepared(statement: LiteralString, values: Values) -> list[Row]:
    """Run one statement, prepared in the session, and return its rows. Raises Django's database errors."""

    def run() -> list[Row]:
        with connection.wrap_database_errors, psycopg.Cursor(raw_connection()) as cursor:
            return cursor.execute(statement, values).fetchall()

    _log((statement, values))
    return _call_through_wrappers(run, statement, values)


def execute_pipelined(statements: Sequence[Statement]) -> list[list[Row]]:
    """Run the statements in one round trip and return the rows of each, none for one that returns no rows.

    Call it within a transaction: the statements see each other's changes, and the caller looks at the rows before the
    commit. Raises Django's database errors.
    """

    def run() -> list[list[Row]]:
        raw = raw_connection()
        with contextlib.ExitStack() as cursors, connection.wrap_database_errors:
            opened = [cursors.enter_context(psycopg.Cursor(raw)) for _ in statements]
            with raw.pipeline():
                for cursor, (statement, values) in zip(opened, statements, strict=True):
                    cursor.execute(statement, values)
            return [cursor.fetchall() if cursor.description else [] for cursor in opened]

    _log(*statements)
    first, values = statements[0]
    return _call_through_wrappers(run, first, values)


def execute_under_lock(
    lock: LiteralString,
    key: int,
    statement: LiteralString,
    values: Mapping[str, Any],
    *,
    prepare: bool | None = None,
) -> list[tuple[Any, ...]]:
    """Take a lock, run one statement and return its rows.

    In one round trip and one transaction, with a fresh snapshot after the lock. `prepare=False` makes the planner use
    the values at hand.

    Call it outside a transaction. Django's execute wrappers are called as for any other statement.
    """

    return _call_through_wrappers(
        lambda: _run_pipeline(raw_connection(), (lock, [key]), (statement, values), prepare=prepare),
        statement,
        values,
    )


def _log(*statements: Statement) -> None:
    """Note the statements where Django notes its own, while something counts them."""
    if connection.queries_logged:
        connection.queries_log.extend({"sql": statement, "time": "0"} for statement, _ in statements)


def _call_through_wrappers(run: Callable[[], T], statement: LiteralString, values: Values) -> T:
    def execute(*_: Any) -> T:
        return run()

    for wrapper in reversed(connection.execute_wrappers):
        execute = partial(wrapper, execute)
    return execute(statement, values, False, {"connection": connection})


def _run_pipeline(
    raw: psycopg.Connection[tuple[Any, ...]],
    lock: tuple[LiteralString, list[int]],
    statement: tuple[LiteralString, Mapping[str, Any]],
    *,
    prepare: bool | None,
) -> list[tuple[Any, ...]]:
    with psycopg.Cursor(raw) as locking, psycopg.Cursor(raw) as cursor:
        with raw.pipeline():
            locking.execute(*lock)
            cursor.execute(*statement, prepare=prepare)
        # The pipeline's end commits. To fetch within it would be a round trip of its own.
        return cursor.fetchall()
