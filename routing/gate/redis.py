"""Redis as the gate uses it: one client a process, impatient, with one error for all that can be wrong with it.

One server (or a primary with replicas): the scripts name keys as they go, which Redis Cluster does not allow.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

if TYPE_CHECKING:
    from redis.commands.core import Script

PREFIX = "rb:gate:"
CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 2.0

_FOLDER = Path(__file__).with_name("scripts")
_LIBRARY = ("call", "limits", "breakers", "keys")


class RedisAway(Exception):  # noqa: N818 -- nobody's error: calls wait until it is back
    """Redis cannot be reached, or does not do what it was asked. The words name no address."""


class ScriptFailed(RedisAway):
    """Redis answered, with an error."""


@functools.cache
def client(*, connect_seconds: float = CONNECT_SECONDS, answer_seconds: float = ANSWER_SECONDS) -> Redis:
    """A connection that broke while it lay idle is made anew, once. Safe after a fork."""
    return Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=connect_seconds,
        socket_timeout=answer_seconds,
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
    )


def run(name: str, *, plan: bytes, call: dict[str, Any], by: Redis | None = None) -> Any:
    """The script's answer. Raises RedisAway, and then nobody knows whether it ran, and ScriptFailed."""
    try:
        return _script(name)(args=(plan, msgspec.json.encode(call)), client=by)
    except ResponseError as error:
        raise ScriptFailed(type(error).__name__) from error
    except (RedisError, OSError) as error:
        raise away(error) from error


def away(error: Exception) -> RedisAway:
    return RedisAway(f"{type(error).__name__}")


@functools.cache
def _script(name: str) -> Script:
    """Sent once, called by its hash; sent again to a Redis that has forgotten it."""
    parts = [(_FOLDER / f"{part}.lua").read_text() for part in (*_LIBRARY, name)]
    script: Script = client().register_script("\n".join(parts))
    return script
