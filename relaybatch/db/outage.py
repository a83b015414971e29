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

LONGEST_PAUSE_SECONDS = 5.0
# Django's for statements through its cursors, psycopg's for those of the fast path. Internal errors are of a session
# that the server ended within a transaction, and of a server that takes no writes any more (failover).
AWAY = (
    *(OperationalError, InterfaceError, InternalError),
    *(psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError),
)
# Of the same classes, and yet about the rows in question: a limit of what can be stored, a damaged page or index. It
# would be the same for ever. https://www.postgresql.org/docs/current/errcodes-appendix.html
_ABOUT_ROWS = ("54", "XX001", "XX002")
_ending = threading.Event()


def is_about_rows(error: Exception) -> bool:
    """Of what AWAY has: no outage, since the database answers everybody else."""
    code = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None)
    return str(code).startswith(_ABOUT_ROWS)


def stop_waiting() -> None:
    """This process must end: from now on `patiently` raises what it would wait for."""
    _ending.set()


def patiently(do: Callable[[], T]) -> T:
    """Calls `do` until the database answers. `do` must be safe to repeat: a commit may have succeeded unheard.

    Raises AWAY only after `stop_waiting`.
    """
    pause = 0.1
    while True:
        try:
            return do()
        except AWAY as error:
            logger.warning("the database is away, trying again: %s", type(error).__name__)
            connection.close()
            if _ending.is_set():
                raise
        _ending.wait(pause * (0.5 + random.random()))  # noqa: S311 -- spreads load, guards nothing
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
