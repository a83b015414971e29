"""Faults of Redis: emptied, its queue changed, killed, read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis

if TYPE_CHECKING:
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.faults.schedule import Fault, FaultSchedule

TARGET = "redis"


class RedisFaults:
    def __init__(self, deployment: ChaosDeployment, schedule: FaultSchedule) -> None:
        self._servers = deployment.servers
        self._schedule = schedule
        self._rng = schedule.rng

    def weights(self) -> dict[Fault, int]:
        return {
            self._flush: 3,
            self._change_queue: 3,
            self._kill: 4,
            self._make_read_only: 3,
        }

    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(self._servers.redis_url, socket_timeout=5)

    def _flush(self) -> bool:
        if self._schedule.is_active(TARGET):
            return False
        with self._client() as client:
            client.flushall()
        self._schedule.counts["Redis FLUSHALL"] += 1
        return True

    def _change_queue(self) -> bool:
        """Duplicate some messages and lose others."""
        if self._schedule.is_active(TARGET):
            return False
        with self._client() as client:
            messages: Any = client.lrange("items", 0, 9)
            if messages:
                client.rpush("items", *messages)
                client.lpush("items", *reversed(messages))
            client.lpop("items", 3)
        self._schedule.counts["messages doubled and lost"] += 1
        return True

    def _kill(self) -> bool:
        if not self._schedule.start(TARGET, name="Redis killed"):
            return False
        self._servers.redis.kill()
        self._schedule.after(self._rng.uniform(0, 5), self._restart)
        return True

    def _restart(self) -> None:
        self._servers.redis.start()
        self._schedule.end(TARGET)

    def _make_read_only(self) -> bool:
        """As after a failover: it answers, and takes no writes."""
        if not self._schedule.start(TARGET, name="Redis read-only"):
            return False
        with self._client() as client:
            client.replicaof("127.0.0.1", 1)
        self._schedule.after(self._rng.uniform(0.5, 6), self._make_writable)
        return True

    def _make_writable(self) -> None:
        with self._client() as client:
            client.replicaof("NO", "ONE")
        self._schedule.end(TARGET)
