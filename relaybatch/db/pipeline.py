"""psycopg's own cursors on Django's connection, for the statements of items, of their results and of submissions.

Parameters are bound by the server and statements prepared there; the ORM would cost more than half of the throughput.
Django's execute wrappers are called as for any other statement.
"""

from __future__ import annotations

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
    return _run((statement, values), lambda: _execute(statement, values))


def fetch_binary(statement: LiteralString, values: Values) -> list[Row]:
    """Run one statement and return its rows, sent in PostgreSQL's binary format: as text, bytes take twice the space.

    It is planned anew each time, for these values. Raises Django's database errors.
    """
    return _run((statement, values), lambda: _execute(statement, values, prepare=False, binary=True))


def execute_pipelined(statements: Sequence[Statement]) -> list[list[Row]]:
    """Run the statements in two round trips and return the rows of each, none for one that returns no rows.

    Call it within a transaction: the statements see each other's changes, and the caller looks at the rows before the
    commit. Raises Django's database errors.

    The last one travels by itself. psycopg sends a further message after a pipeline, with which PostgreSQL ceases to
    watch for how long the session is idle in its transaction: if the process hung then, its locks would stay for ever.
    """

    def run() -> list[list[Row]]:
        with connection.wrap_database_errors, psycopg.Cursor(raw_connection()) as last:
            cursors = _send(statements[:-1])
            last.execute(*statements[-1])
            return [_rows(cursor) for cursor in (*cursors, last)]

    return _run(statements[0], run, *statements[1:])


def execute_under_lock(
    lock: LiteralString,
    key: int | Sequence[int],
    statement: Statement,
    *,
    before_commit: Callable[[], None] | None = None,
) -> list[Row]:
    """Take a lock, run one statement and return its rows.

    In one round trip and one transaction, with a fresh snapshot after the lock. `key`: what the lock's statement takes.
    `before_commit` is called when all has been sent. Call it outside a transaction. Raises psycopg's errors.
    """

    def run() -> list[Row]:
        return _rows(_send(((lock, [key]), statement), before_commit=before_commit)[1])

    return _run(statement, run)


def _execute(statement: LiteralString, values: Values, **how: bool) -> list[Row]:
    with connection.wrap_database_errors, psycopg.Cursor(raw_connection()) as cursor:
        return cursor.execute(statement, values, **how).fetchall()


def _send(
    statements: Sequence[Statement], *, before_commit: Callable[[], None] | None = None
) -> list[psycopg.Cursor[Row]]:
    raw = raw_connection()
    cursors = [psycopg.Cursor(raw) for _ in statements]
    with raw.pipeline():
        for cursor, (statement, values) in zip(cursors, statements, strict=True):
            cursor.execute(statement, values)
        if before_commit:
            before_commit()
    # Outside a transaction, the pipeline's end commits. To fetch within it would be a round trip of its own.
    return cursors


def _rows(cursor: psycopg.Cursor[Row]) -> list[Row]:
    return cursor.fetchall() if cursor.description else []


def _run(statement: Statement, run: Callable[[], T], *others: Statement) -> T:
    """Call `run` through the execute wrappers; note the statements where Django does, while something counts them."""
    if connection.queries_logged:
        connection.queries_log.extend({"sql": sql, "time": "0"} for sql, _ in (statement, *others))

    def execute(*_: Any) -> T:
        return run()

    for wrapper in reversed(connection.execute_wrappers):
        execute = partial(wrapper, execute)
    return execute(*statement, False, {"connection": connection})
