"""Whether what this process needs answers: one look a second, however often it is asked."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
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
from relaybatch.redis_errors import WRONG_REPLY
from relaybatch.spare_connections import lend_connection
from routing.gate.redis import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

# Below the 5 s that load balancers commonly wait.
WAIT_SECONDS = 3.0
FRESH_SECONDS = 1.0
NOT_IN_TIME, NOT_AT_ALL = NO_ANSWER = ("does not answer in time", "does not answer")
# redis-py counts some of them among the connection's.
ERROR_REPLIES = (ResponseError, AuthenticationError, AuthorizationError, BusyLoadingError)


class NotReady(Exception):  # noqa: N818 -- carries what to say
    pass


class Strand:
    """Parts that are asked one after the other, on a thread that leaves no database session behind."""

    def __init__(self, checks: dict[str, Callable[[], None]]) -> None:
        self._checks = checks
        self._asked: dict[str, Future[None]] = {}
        self._thread: threading.Thread | None = None
        self._session: Any = None

    def ask(self) -> dict[str, Future[None]]:
        """One that still hangs since an earlier look is not asked twice: what it says then is the answer."""
        if self._thread is None or not self._thread.is_alive():
            self._asked = {name: Future() for name in self._checks}
            self._thread = threading.Thread(target=self._run, name="readyz", daemon=True)
            self._thread.start()
        return self._asked

    def cut(self) -> None:
        """Ends its wait for a database that says nothing: the next look asks the one that is there then."""
        raw = self._session and self._session.connection
        if raw is not None and self._thread is not None and self._thread.is_alive():
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
                _ask(self._asked[name], check)
        finally:
            lend_connection()
            connections.close_all()


class Readiness:
    """One look at a time: of several who ask at once one looks, and what it finds is good for a second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._look: Future[dict[str, str]] | None = None
        self._fresh_until = 0.0
        self._migrated = False
        self._database = Strand({"database": _check_database, "migrations": self._check_migrations})
        self._payloads = Strand({"payload_store": _check_payloads})
        self._redis = Strand({"redis": _check_redis})

    def words(self) -> dict[str, str]:
        """A word for each part, `ok` or what is wrong with it, within WAIT_SECONDS."""
        look, is_mine = self._join()
        if is_mine:
            try:
                words = self._find()
            except BaseException as error:
                look.set_exception(error)
                raise
            self._fresh_until = time.monotonic() + FRESH_SECONDS
            look.set_result(words)
        return look.result()

    def forget(self) -> None:
        """The next one who asks looks anew."""
        with self._lock:
            self._look, self._migrated = None, False

    def _join(self) -> tuple[Future[dict[str, str]], bool]:
        with self._lock:
            look = self._look
            if look is not None and (not look.done() or time.monotonic() < self._fresh_until):
                return look, False
            self._look = Future()
            return self._look, True

    def _find(self) -> dict[str, str]:
        """The payload store's marker stands in the database, and is asked for in the session that has just answered."""
        deadline = time.monotonic() + WAIT_SECONDS
        redis = self._redis.ask()
        words = _words(self._database.ask(), deadline=deadline)
        if words["database"] in NO_ANSWER:
            words["payload_store"] = words["database"]
        else:
            words |= _words(self._payloads.ask(), deadline=deadline)
        words |= _words(redis, deadline=deadline)
        self._database.cut()
        self._payloads.cut()
        return words

    def _check_migrations(self) -> None:
        """What was applied once stays so: it is not looked for again."""
        if not self._migrated:
            executor = MigrationExecutor(connections["default"])
            missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
            if missing:
                raise NotReady(f"{len(missing)} not applied: run manage.py migrate")
            self._migrated = True


def _ask(answer: Future[None], check: Callable[[], None]) -> None:
    try:
        check()
    except Exception as error:  # noqa: BLE001 -- told by whoever waits for it
        answer.set_exception(error)
    else:
        answer.set_result(None)


def _words(asked: dict[str, Future[None]], *, deadline: float) -> dict[str, str]:
    return {name: _word(name, answer, deadline=deadline) for name, answer in asked.items()}


def _word(name: str, answer: Future[None], *, deadline: float) -> str:
    try:
        answer.result(timeout=max(deadline - time.monotonic(), 0))
    except NotReady as reason:
        return str(reason)
    except NotInTime:
        return NOT_IN_TIME
    except Exception as error:  # noqa: BLE001 -- whatever is wrong with it, the part is not ready
        # The class alone: messages of drivers hold addresses and names of accounts.
        logger.warning("not ready: %s: %s", name, type(error).__qualname__)
        return NOT_AT_ALL
    return "ok"


def _check_database() -> None:
    """A standby, and a server that has run out of room, may answer every question and take nothing."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')::bool")
        if cursor.fetchone()[0]:
            raise NotReady("takes no writes")


def _check_redis() -> None:
    """By a write, as the gate and the broker need it: a replica or a full server answers PING as well."""
    with Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=WAIT_SECONDS, socket_timeout=WAIT_SECONDS
    ) as redis:
        try:
            written = redis.set(f"{PREFIX}ready", 1, px=1000)
        except ERROR_REPLIES as error:
            logger.warning("not ready: redis: %s", type(error).__qualname__)
            raise NotReady("answers with an error") from error
        except (InvalidResponse, *WRONG_REPLY):
            written = None
    if written is not True:
        raise NotReady("answers wrongly")


def _check_payloads() -> None:
    try:
        open_store().check_room()
    except PayloadStoreUnavailable as error:
        raise NotReady(str(error)) from error


READINESS = Readiness()
