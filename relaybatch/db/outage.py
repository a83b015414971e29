"""Waiting for a database that is away: without end, since no item may fail because of our own outage."""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING, TypeVar

import psycopg
from django.db import InterfaceError, InternalError, OperationalError, connection

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_PAUSE_SECONDS = 5.0
# Django's for statements through its cursors, psycopg's for those of the fast path. Internal errors are of a session
# that the server ended within a transaction, and of a server that takes no writes any more (failover).
DATABASE_UNAVAILABLE = (
    *(OperationalError, InterfaceError, InternalError),
    *(psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError),
)
# Of the same classes, and yet about the rows in question: a limit of what can be stored, a damaged page or index. It
# would be the same for ever. https://www.postgresql.org/docs/current/errcodes-appendix.html
_ROW_ERROR_SQLSTATES = ("54", "XX001", "XX002")
_stop_requested = threading.Event()


def is_row_error(error: Exception) -> bool:
    """Of what AWAY has: no outage, since the database answers everybody else."""
    code = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None)
    return str(code).startswith(_ROW_ERROR_SQLSTATES)


def stop_retrying() -> None:
    """This process must end: from now on `patiently` raises what it would wait for."""
    _stop_requested.set()


def retry_during_outage(action: Callable[[], T]) -> T:
    """Calls `do` until the database answers. `do` must be safe to repeat: a commit may have succeeded unheard.

    Raises AWAY only after `stop_waiting`.
    """
    pause_seconds = 0.1
    while True:
        try:
            return action()
        except DATABASE_UNAVAILABLE as error:
            logger.warning("the database is away, trying again: %s", type(error).__name__)
            connection.close()
            if _stop_requested.is_set():
                raise
        _stop_requested.wait(pause_seconds * (0.5 + random.random()))  # noqa: S311 -- spreads load, guards nothing
        pause_seconds = min(pause_seconds * 2, MAX_PAUSE_SECONDS)
