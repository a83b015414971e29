"""psycopg's own cursors on Django's connection, for the statements of an item's path and of its results.

Parameters are bound by the server and statements prepared there; the ORM would cost more than half of the throughput.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def _do_nothing() -> None:
    pass


def raw_connection() -> psycopg.Connection[tuple[Any, ...]]:
    connection.ensure_connection()
    raw: psycopg.Connection[tuple[Any, ...]] = connection.connection
    return raw


def fetch_binary(statement: LiteralString, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows, sent in PostgreSQL's binary format: as text, bytes take twice the space.

    It is planned anew each time, for these values. Raises Django's errors. Its execute wrappers are called as for any
    other statement.
    """

    def run(*_: Any) -> list[tuple[Any, ...]]:
        with connection.wrap_database_errors, psycopg.Cursor(raw_connection()) as cursor:
            return cursor.execute(statement, values, prepare=False, binary=True).fetchall()

    return _run_wrapped(run, statement, values)


def execute_under_lock(
    lock: LiteralString,
    key: int | Sequence[int],
    *statements: tuple[LiteralString, Mapping[str, Any]],
    prepare: bool | None = None,
    before_commit: Callable[[], None] = _do_nothing,
) -> list[tuple[Any, ...]]:
    """Take a lock, run the statements and return the rows of the first one.

    In one round trip and one transaction, with a fresh snapshot after the lock. `key`: what the lock's statement takes.
    `prepare=False` makes the planner use the values at hand. `before_commit` is called when all has been sent.

    Call it outside a transaction. Django's execute wrappers are called as for any other statement.
    """

    def run(*_: Any) -> list[tuple[Any, ...]]:
        return _run_pipeline(raw_connection(), ((lock, [key]), *statements), prepare, before_commit)

    return _run_wrapped(run, *statements[0])


def _run_wrapped(
    run: Callable[..., list[tuple[Any, ...]]], statement: LiteralString, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    for wrapper in reversed(connection.execute_wrappers):
        run = partial(wrapper, run)
    return run(statement, values, False, {"connection": connection})


def _run_pipeline(
    raw: psycopg.Connection[tuple[Any, ...]],
    statements: Sequence[tuple[LiteralString, Any]],
    prepare: bool | None,
    before_commit: Callable[[], None],
) -> list[tuple[Any, ...]]:
    cursors = [psycopg.Cursor(raw) for _ in statements]
    with raw.pipeline():
        for cursor, statement in zip(cursors, statements, strict=True):
            cursor.execute(*statement, prepare=prepare if cursor is not cursors[0] else None)
        before_commit()
    # The pipeline's end commits. To fetch within it would be a round trip of its own.
    return cursors[1].fetchall()
