"""The gate's Redis: one client a process, short timeouts, and one exception for everything that can go wrong.

It has to be one server (or a primary with replicas): the scripts compute the names of their keys, which Redis Cluster
does not allow.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ReadOnlyError, ResponseError
from redis.retry import Retry

from relaybatch.broker.redis_errors import REDIS_UNAVAILABLE

CONNECT_TIMEOUT_SECONDS = 1.0
RESPONSE_TIMEOUT_SECONDS = 2.0

_SCRIPTS_FOLDER = Path(__file__).with_name("scripts")
_SHARED_SCRIPTS = ("call", "limits", "breakers", "keys")


class RedisUnavailable(Exception):  # noqa: N818 -- a state, not a fault: calls wait until it is over
    """Redis cannot be reached, or did not run the script. The message names no address."""


class ScriptError(RedisUnavailable):
    """Redis returned an error."""


@functools.cache
def client(
    *,
    connect_timeout_seconds: float = CONNECT_TIMEOUT_SECONDS,
    response_timeout_seconds: float = RESPONSE_TIMEOUT_SECONDS,
) -> Redis:
    """The client for these timeouts. Safe after a fork.

    It reconnects once when an idle connection turns out to be broken, and when the server has become read-only: after
    a failover, the address may lead to another server.
    """
    return Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=connect_timeout_seconds,
        socket_timeout=response_timeout_seconds,
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError, ReadOnlyError)),
    )


def run_script(name: str, *, plan: bytes, call: dict[str, Any], redis: Redis | None = None) -> Any:
    """Run the script. Raises ScriptError, and RedisUnavailable: then it is unknown whether the script ran."""
    script, arguments = _script(name), (plan, msgspec.json.encode(call))
    try:
        return script.run(redis or client(), arguments)
    except ResponseError as error:
        raise ScriptError(type(error).__name__) from error
    except REDIS_UNAVAILABLE as error:
        raise redis_unavailable(error) from error


def redis_unavailable(error: Exception) -> RedisUnavailable:
    return RedisUnavailable(f"{type(error).__name__}")


@dataclass(frozen=True, slots=True)
class _Script:
    """A script, called by its hash; its text is sent when the server does not know it."""

    text: str
    sha1: str

    def run(self, redis: Redis, arguments: tuple[bytes, bytes]) -> Any:
        try:
            return redis.evalsha(self.sha1, 0, *arguments)
        except NoScriptError:
            return redis.eval(self.text, 0, *arguments)


@functools.cache
def _script(name: str) -> _Script:
    parts = [
        (_SCRIPTS_FOLDER / f"{part}.lua").read_text(encoding="utf-8") for part in (*_SHARED_SCRIPTS, name)
    ]
    text = "\n".join(parts)
    return _Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
