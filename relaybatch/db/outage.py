"""Database outages: work is retried until the database answers, since no item may fail because of our own outage."""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import psycopg
from django.db import InterfaceError, InternalError, OperationalError, connection

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 5.0
# Django's errors for statements through its cursors, psycopg's for those of the fast path. Internal errors are those of
# a session that the server ended within a transaction, and of a server that takes no writes any more (failover).
DATABASE_UNAVAILABLE = (
    *(OperationalError, InterfaceError, InternalError),
    *(psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError),
)
# SQLSTATEs of the same classes that are about the rows in question: a limit of what can be stored, a damaged page or
# index. Retrying would fail for ever. https://www.postgresql.org/docs/current/errcodes-appendix.html
_ROW_ERROR_SQLSTATES = ("54", "XX001", "XX002")
_stop_requested = threading.Event()


def is_row_error(error: Exception) -> bool:
    """Whether a DATABASE_UNAVAILABLE error is about the rows and no outage: the database answers everybody else."""
    code = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None)
    return str(code).startswith(_ROW_ERROR_SQLSTATES)


def stop_retrying() -> None:
    """Make `retry_during_outage` raise instead of waiting, in all threads: this process must end."""
    _stop_requested.set()


def retry_during_outage(action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `action(*args, **kwargs)` until the database answers, with backoff and without end.

    `action` must be safe to repeat: a commit may have succeeded before the connection dropped. Raises
    DATABASE_UNAVAILABLE only after `stop_retrying`.
    """
    pause_seconds = FIRST_PAUSE_SECONDS
    while True:
        try:
            return action(*args, **kwargs)
        except DATABASE_UNAVAILABLE as error:
            logger.warning("database unavailable", extra={"reason": type(error).__name__})
            connection.close()
            if _stop_requested.is_set():
                raise
        _stop_requested.wait(pause_seconds * (0.5 + random.random()))  # noqa: S311 -- spreads load, guards nothing
        pause_seconds = min(pause_seconds * 2, MAX_PAUSE_SECONDS)
