"""Redis as the gate uses it: one client a process, impatient, with one error for all that can be wrong with it.

One server (or a primary with replicas): the scripts name keys as they go, which Redis Cluster does not allow.
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

PREFIX = "rb:gate:"
CONNECT_TIMEOUT_SECONDS = 1.0
RESPONSE_TIMEOUT_SECONDS = 2.0

_SCRIPTS_FOLDER = Path(__file__).with_name("scripts")
_SHARED_SCRIPTS = ("call", "limits", "breakers", "keys")


class RedisUnavailable(Exception):  # noqa: N818 -- nobody's error: calls wait until it is back
    """Redis cannot be reached, or does not do what it was asked. The words name no address."""


class ScriptError(RedisUnavailable):
    """Redis answered, with an error."""


@functools.cache
def client(
    *, connect_seconds: float = CONNECT_TIMEOUT_SECONDS, answer_seconds: float = RESPONSE_TIMEOUT_SECONDS
) -> Redis:
    """A connection that broke while it lay idle is made anew, once. Safe after a fork.

    So is one to a server that takes no writes any more: the address may be that of another one by now.
    """
    return Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=connect_seconds,
        socket_timeout=answer_seconds,
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError, ReadOnlyError)),
    )


def run_script(name: str, *, plan: bytes, call: dict[str, Any], redis: Redis | None = None) -> Any:
    """The script's answer. Raises RedisAway, and then nobody knows whether it ran, and ScriptFailed."""
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
    """Sent once, called by its hash; sent again to a Redis that has forgotten it."""

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
