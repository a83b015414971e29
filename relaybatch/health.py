"""`/healthz`: this process answers. `/readyz`: what it needs answers too, and if not, which part does not."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt
from redis import Redis
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    InvalidResponse,
    ResponseError,
)

from batches.payloads import PayloadStoreUnavailable, open_store
from relaybatch import errors
from relaybatch.http import error_answer
from relaybatch.redis_errors import WRONG_REPLY
from routing.gate.redis import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from django.http import HttpRequest, HttpResponse

logger = logging.getLogger(__name__)

# Below the 5 s that load balancers commonly wait.
WAIT_SECONDS = 3.0
# redis-py counts some of them among the connection's.
ERROR_REPLIES = (ResponseError, AuthenticationError, AuthorizationError, BusyLoadingError)


class NotReady(Exception):  # noqa: N818 -- carries what to say
    pass


@csrf_exempt
def healthz(request: HttpRequest) -> HttpResponse:
    return _if_read(request) or JsonResponse({"status": "ok"})


@csrf_exempt
def readyz(request: HttpRequest) -> HttpResponse:
    """503 with a word for each part that is away. Parts are asked at once, and given up on after WAIT_SECONDS."""
    if refusal := _if_read(request):
        return refusal
    pool = ThreadPoolExecutor(max_workers=len(CHECKS), thread_name_prefix="readyz")
    asked = {name: pool.submit(_asked, check) for name, check in CHECKS.items()}
    # A part that hangs must not hold up the answer: its thread ends with the part's own time-out.
    pool.shutdown(wait=False)
    deadline = time.monotonic() + WAIT_SECONDS
    found = {name: _answer(name, future, deadline=deadline) for name, future in asked.items()}
    ready = all(word == "ok" for word in found.values())
    body = {"status": "ready" if ready else "unavailable", "checks": found}
    return JsonResponse(body, status=200 if ready else 503)


def _if_read(request: HttpRequest) -> HttpResponse | None:
    if request.method in ("GET", "HEAD"):
        return None
    response = error_answer(request, errors.MethodNotAllowed(f"{request.method} is not allowed here."))
    response["Allow"] = "GET, HEAD"
    return response


def _asked(check: Callable[[], None]) -> None:
    """In a thread, with connections of its own that end with it."""
    try:
        check()
    finally:
        connections.close_all()


def _answer(name: str, future: Future[None], *, deadline: float) -> str:
    try:
        future.result(timeout=max(deadline - time.monotonic(), 0))
    except NotReady as reason:
        return str(reason)
    except NotInTime:
        return "does not answer in time"
    except Exception as error:  # noqa: BLE001 -- whatever is wrong with it, the part is not ready
        # The class alone: messages of drivers hold addresses and names of accounts.
        logger.warning("not ready: %s: %s", name, type(error).__qualname__)
        return "does not answer"
    return "ok"


def _check_database() -> None:
    """A standby, and a server that has run out of room, may answer every question and take nothing."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')::bool")
        if cursor.fetchone()[0]:
            raise NotReady("takes no writes")


def _check_migrations() -> None:
    executor = MigrationExecutor(connections["default"])
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        raise NotReady(f"{len(missing)} not applied: run manage.py migrate")


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


CHECKS: dict[str, Callable[[], None]] = {
    "database": _check_database,
    "migrations": _check_migrations,
    "redis": _check_redis,
    "payload_store": _check_payloads,
}
