"""Readiness checks of PostgreSQL, migrations, Redis and the payload store: at most once a second, for all callers."""

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
from relaybatch.broker.redis_errors import INVALID_REPLY_ERRORS
from relaybatch.db.connection import release_connection
from routing.resolution.gate_plan import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

# Less than the 5 s that load balancers commonly wait.
TIMEOUT_SECONDS = 3.0
CACHE_SECONDS = 1.0
OK = "ok"
TIMED_OUT, CONNECTION_FAILED = UNANSWERED = ("does not answer in time", "does not answer")
# redis-py derives some of them from ConnectionError.
ERROR_REPLIES = (ResponseError, AuthenticationError, AuthorizationError, BusyLoadingError)


class CheckThread:
    """A thread that runs some checks one after the other, in a database session of its own.

    A check returns `ok`, or what is wrong. No session is left when the thread ends.
    """

    def __init__(self, checks: dict[str, Callable[[], str]]) -> None:
        self._checks = checks
        self._results: dict[str, Future[str]] = {}
        self._thread: threading.Thread | None = None
        self._session: Any = None
        self._session_lock = threading.Lock()

    def start(self) -> dict[str, Future[str]]:
        """Start the thread and return a future per check. While an earlier run still hangs, return its futures."""
        if self._thread is None or not self._thread.is_alive():
            self._results = {name: Future() for name in self._checks}
            self._thread = threading.Thread(target=self._run, name="readyz", daemon=True)
            self._thread.start()
        return self._results

    def abort(self) -> None:
        """Shut the session's socket down, if the check still waits for it: the next run makes a new connection."""
        with self._session_lock:  # a released connection belongs to another thread
            raw = self._session and self._session.connection
            if raw is None:
                return
            self._session.errors_occurred = True  # so that it is closed, and not released to the pool
            with (
                contextlib.suppress(OSError, psycopg.Error),
                socket.socket(fileno=os.dup(raw.fileno())) as line,
            ):
                line.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        self._session = connections["default"].copy()
        # Longer than the callers wait, so that all of them report the same.
        self._session.settings_dict["OPTIONS"]["connect_timeout"] = int(TIMEOUT_SECONDS) + 1
        connections["default"] = self._session
        try:
            for name, check in self._checks.items():
                result = _run_check(name, check)
                with self._session_lock:
                    release_connection()
                self._results[name].set_result(result)
        finally:
            with self._session_lock:
                connections.close_all()


class Readiness:
    """Runs all checks for one caller at a time and caches the results for CACHE_SECONDS."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: dict[str, str] = {}
        self._cached_until = 0.0
        self._migrated = False
        self._database = CheckThread({"database": _check_database, "migrations": self._check_migrations})
        self._payloads = CheckThread({"payload_store": _check_payloads})
        self._redis = CheckThread({"redis": _check_redis})

    def check(self) -> dict[str, str]:
        """Return the result of each check, `ok` or what is wrong, within TIMEOUT_SECONDS."""
        with self._lock:
            if time.monotonic() >= self._cached_until:
                self._results = self._run_checks()
                self._cached_until = time.monotonic() + CACHE_SECONDS
            return self._results

    def clear_cache(self) -> None:
        """Make the next call run all checks again."""
        with self._lock:
            self._cached_until, self._migrated = 0.0, False

    def _run_checks(self) -> dict[str, str]:
        """Run the checks. The payload store's marker is read from the database, so that check runs after it."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        redis = self._redis.start()
        results = _collect_results(self._database.start(), deadline=deadline)
        if results["database"] in UNANSWERED:
            results["payload_store"] = results["database"]
        else:
            results |= _collect_results(self._payloads.start(), deadline=deadline)
        results |= _collect_results(redis, deadline=deadline)
        self._database.abort()
        self._payloads.abort()
        return results

    def _check_migrations(self) -> str:
        """Once all migrations were seen applied, do not check again."""
        if not self._migrated:
            executor = MigrationExecutor(connections["default"])
            missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
            if missing:
                return f"{len(missing)} not applied: run manage.py migrate"
            self._migrated = True
        return OK


def _run_check(name: str, check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 -- on any error the part is not ready
        _log_not_ready(name, error)
        return CONNECTION_FAILED


def _log_not_ready(part: str, error: Exception) -> None:
    # Only the type: messages of drivers hold addresses and names of accounts.
    logger.warning("readiness check failed", extra={"step": part, "reason": type(error).__qualname__})


def _collect_results(started: dict[str, Future[str]], *, deadline: float) -> dict[str, str]:
    done = wait(started.values(), timeout=max(deadline - time.monotonic(), 0)).done
    return {name: answer.result() if answer in done else TIMED_OUT for name, answer in started.items()}


def _check_database() -> str:
    """Ask whether writes are possible: a standby, or a server whose disk is full, may answer queries all the same."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')::bool")
        return "takes no writes" if cursor.fetchone()[0] else OK


def _check_redis() -> str:
    """Write a key, since the gate and the broker need writes: a replica or a full server answers PING as well."""
    with Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=TIMEOUT_SECONDS, socket_timeout=TIMEOUT_SECONDS
    ) as redis:
        try:
            written = redis.set(f"{PREFIX}ready", 1, px=1000)
        except ERROR_REPLIES as error:
            _log_not_ready("redis", error)
            return "answers with an error"
        except (InvalidResponse, *INVALID_REPLY_ERRORS):
            written = None
    return OK if written is True else "answers wrongly"


def _check_payloads() -> str:
    try:
        open_store().check_free_space()
    except PayloadStoreUnavailable as error:
        return str(error)
    return OK


READINESS = Readiness()
