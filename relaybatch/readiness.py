"""Whether what this process needs answers: one look a second, however often it is asked."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

import psycopg
from django.conf import settings
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from redis import Redis
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    InvalidResponse,
    ResponseError,
)

from batches.payloads import PayloadStoreUnavailable, open_store
from relaybatch.broker.redis_errors import WRONG_REPLY
from relaybatch.db.connection import lend_connection
from routing.gate.redis import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

# Below the 5 s that load balancers commonly wait.
WAIT_SECONDS = 3.0
FRESH_SECONDS = 1.0
OK = "ok"
NOT_IN_TIME, NOT_AT_ALL = NO_ANSWER = ("does not answer in time", "does not answer")
# redis-py counts some of them among the connection's.
ERROR_REPLIES = (ResponseError, AuthenticationError, AuthorizationError, BusyLoadingError)


class Strand:
    """Parts that are asked one after the other, on a thread that leaves no database session behind.

    A check's answer is `ok`, or what is wrong with its part.
    """

    def __init__(self, checks: dict[str, Callable[[], str]]) -> None:
        self._checks = checks
        self._asked: dict[str, Future[str]] = {}
        self._thread: threading.Thread | None = None
        self._session: Any = None
        self._letting_go = threading.Lock()

    def ask(self) -> dict[str, Future[str]]:
        """One that still hangs since an earlier look is not asked twice: what it says then is the answer."""
        if self._thread is None or not self._thread.is_alive():
            self._asked = {name: Future() for name in self._checks}
            self._thread = threading.Thread(target=self._run, name="readyz", daemon=True)
            self._thread.start()
        return self._asked

    def cut(self) -> None:
        """Ends its wait for a database that says nothing: the next look asks the one that is there then."""
        with self._letting_go:  # what was lent is another thread's
            raw = self._session and self._session.connection
            if raw is None:
                return
            self._session.errors_occurred = True  # so that it is closed, and not lent
            with (
                contextlib.suppress(OSError, psycopg.Error),
                socket.socket(fileno=os.dup(raw.fileno())) as line,
            ):
                line.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        self._session = connections["default"].copy()
        # After those who wait have given up, so that they all say the same.
        self._session.settings_dict["OPTIONS"]["connect_timeout"] = int(WAIT_SECONDS) + 1
        connections["default"] = self._session
        try:
            for name, check in self._checks.items():
                word = _told(name, check)
                with self._letting_go:
                    lend_connection()
                self._asked[name].set_result(word)
        finally:
            with self._letting_go:
                connections.close_all()


class Readiness:
    """One look at a time: who asks meanwhile waits for it, and what it finds is good for a second."""

    def __init__(self) -> None:
        self._looking = threading.Lock()
        self._words: dict[str, str] = {}
        self._fresh_until = 0.0
        self._migrated = False
        self._database = Strand({"database": _check_database, "migrations": self._check_migrations})
        self._payloads = Strand({"payload_store": _check_payloads})
        self._redis = Strand({"redis": _check_redis})

    def words(self) -> dict[str, str]:
        """A word for each part, `ok` or what is wrong with it, within WAIT_SECONDS."""
        with self._looking:
            if time.monotonic() >= self._fresh_until:
                self._words = self._find()
                self._fresh_until = time.monotonic() + FRESH_SECONDS
            return self._words

    def forget(self) -> None:
        """The next one who asks looks anew."""
        with self._looking:
            self._fresh_until, self._migrated = 0.0, False

    def _find(self) -> dict[str, str]:
        """The payload store's marker stands in the database, and is asked for in the session that has just answered."""
        deadline = time.monotonic() + WAIT_SECONDS
        redis = self._redis.ask()
        words = _heard(self._database.ask(), deadline=deadline)
        if words["database"] in NO_ANSWER:
            words["payload_store"] = words["database"]
        else:
            words |= _heard(self._payloads.ask(), deadline=deadline)
        words |= _heard(redis, deadline=deadline)
        self._database.cut()
        self._payloads.cut()
        return words

    def _check_migrations(self) -> str:
        """What was applied once stays so: it is not looked for again."""
        if not self._migrated:
            executor = MigrationExecutor(connections["default"])
            missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
            if missing:
                return f"{len(missing)} not applied: run manage.py migrate"
            self._migrated = True
        return OK


def _told(name: str, check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 -- whatever is wrong with it, the part is not ready
        # The class alone: messages of drivers hold addresses and names of accounts.
        logger.warning("not ready: %s: %s", name, type(error).__qualname__)
        return NOT_AT_ALL


def _heard(asked: dict[str, Future[str]], *, deadline: float) -> dict[str, str]:
    done = wait(asked.values(), timeout=max(deadline - time.monotonic(), 0)).done
    return {name: answer.result() if answer in done else NOT_IN_TIME for name, answer in asked.items()}


def _check_database() -> str:
    """A standby, and a server that has run out of room, may answer every question and take nothing."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')::bool")
        return "takes no writes" if cursor.fetchone()[0] else OK


def _check_redis() -> str:
    """By a write, as the gate and the broker need it: a replica or a full server answers PING as well."""
    with Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=WAIT_SECONDS, socket_timeout=WAIT_SECONDS
    ) as redis:
        try:
            written = redis.set(f"{PREFIX}ready", 1, px=1000)
        except ERROR_REPLIES as error:
            logger.warning("not ready: redis: %s", type(error).__qualname__)
            return "answers with an error"
        except (InvalidResponse, *WRONG_REPLY):
            written = None
    return OK if written is True else "answers wrongly"


def _check_payloads() -> str:
    try:
        open_store().check_free_space()
    except PayloadStoreUnavailable as error:
        return str(error)
    return OK


READINESS = Readiness()
