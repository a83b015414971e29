"""psycopg's own cursors on Django's connection, for the statements of an item's path.

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

    for wrapper in reversed(connection.execute_wrappers):
        run = partial(wrapper, run)
    return run(*statements[0], False, {"connection": connection})


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
