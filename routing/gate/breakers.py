"""The breakers of host keys, to read and reset in the admin.

Calls obey them in `scripts/breakers.lua`, where the ladders of open times stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from relaybatch.broker.redis_errors import REDIS_UNAVAILABLE
from routing.gate.redis import client, redis_unavailable
from routing.resolution.gate_plan import PREFIX, breaker_id
from routing.secrets.encryption import SecretError
from routing.secrets.host_key_secret import host_key_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from routing.models import HostKey


@dataclass(frozen=True, slots=True)
class BreakerState:
    """`state`: closed, open, half-open, or unknown when the host key's secret cannot be read.

    `until`: when an open breaker becomes half-open. `last_failure`: a status or a few words. `failures`: in a row.
    """

    host_key: HostKey
    state: str
    until: datetime | None = None
    last_failure: str = ""
    last_failure_at: datetime | None = None
    failures: int = 0


def breaker_states(host_keys: Sequence[HostKey]) -> list[BreakerState]:
    """The states in the order of the host keys, read in one round trip. Raises RedisUnavailable."""
    names = [_redis_key_or_none(host_key) for host_key in host_keys]
    try:
        with client().pipeline(transaction=False) as pipeline:
            pipeline.time()
            for name in names:
                pipeline.hgetall(name or f"{PREFIX}breaker:unknown")
            (seconds, microseconds), *found = pipeline.execute()
        now_ms = seconds * 1000 + microseconds // 1000
        return [
            _state(host_key, hash_, now_ms) if name else BreakerState(host_key, "unknown")
            for host_key, name, hash_ in zip(host_keys, names, found, strict=True)
        ]
    except REDIS_UNAVAILABLE as error:
        raise redis_unavailable(error) from error


def reset_breaker(host_key: HostKey) -> None:
    """Close the breaker, for every host key with the same value. Raises RedisUnavailable and SecretError."""
    try:
        client().delete(_redis_key(host_key))
    except REDIS_UNAVAILABLE as error:
        raise redis_unavailable(error) from error


def _redis_key_or_none(host_key: HostKey) -> str | None:
    try:
        return _redis_key(host_key)
    except SecretError:
        return None


def _redis_key(host_key: HostKey) -> str:
    return f"{PREFIX}breaker:{breaker_id(host_key_secret(host_key), host_key_id=str(host_key.id))}"


def _state(host_key: HostKey, found: dict[bytes, bytes], now_ms: int) -> BreakerState:
    if b"until" not in found:
        return BreakerState(host_key, "closed")
    until_ms = int(found[b"until"])
    return BreakerState(
        host_key,
        "open" if now_ms < until_ms else "half-open",
        until=_time(until_ms),
        last_failure=found.get(b"status", b"").decode(),
        last_failure_at=_time(found.get(b"at", 0)),
        failures=int(found.get(b"failures", 0)),
    )


def _time(milliseconds: Any) -> datetime:
    return datetime.fromtimestamp(int(cast("str", milliseconds)) / 1000, tz=UTC)
