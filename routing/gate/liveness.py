"""Liveness of this process towards the gate: without it, its places in concurrency limits and its probes are freed.

The scripts renew the liveness key with every place that a call takes. A process whose calls may run longer than
RELAY_WORKER_LOST_S has to call `heartbeat` besides (batches/execution/worker_monitor.py does).
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections import deque
from typing import TYPE_CHECKING, Any

from django.conf import settings

from relaybatch.broker.redis_errors import REDIS_UNAVAILABLE
from routing.gate.redis import RedisUnavailable, ScriptError, client, run_script
from routing.resolution.gate_plan import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis import Redis

logger = logging.getLogger(__name__)

HEARTBEATS_PER_LOST_TIMEOUT = 6
# Short, because the thread that sends the heartbeat has other work to do.
REDIS_TIMEOUT_SECONDS = 0.5
DEFERRED_RELEASE_SECONDS = 0.2
MAX_DEFERRED_RELEASES = 1000


class Liveness:
    """The process's liveness key, and the releases that Redis has not confirmed.

    `id` is created when the process starts, and again in the child of a fork.
    """

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self.id = uuid.uuid4().hex
        self._next_heartbeat = 0.0
        self._deferred: deque[tuple[bytes, dict[str, Any]]] = deque(maxlen=MAX_DEFERRED_RELEASES)

    def heartbeat(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Renew the liveness key and send deferred releases when due. Never raises while Redis is unavailable."""
        if clock() < self._next_heartbeat:
            return
        self._next_heartbeat = clock() + settings.RELAY_WORKER_LOST_S / HEARTBEATS_PER_LOST_TIMEOUT
        try:
            redis = client(
                connect_timeout_seconds=REDIS_TIMEOUT_SECONDS, response_timeout_seconds=REDIS_TIMEOUT_SECONDS
            )
            redis.set(f"{PREFIX}liveness:{self.id}", 1, px=settings.RELAY_WORKER_LOST_S * 1000)
            self._send_deferred(redis)
        except (*REDIS_UNAVAILABLE, RedisUnavailable) as error:
            logger.warning("redis unavailable, heartbeat skipped", extra={"reason": type(error).__name__})

    def defer_release(self, *, plan: bytes, call: dict[str, Any]) -> None:
        """Send this release at a later heartbeat: Redis was unavailable, or it is unknown whether it arrived."""
        self._deferred.append((plan, call))

    def _send_deferred(self, redis: Redis) -> None:
        """Send as many as there is time for; the rest is sent at the next heartbeat."""
        stop_at = time.monotonic() + DEFERRED_RELEASE_SECONDS
        while self._deferred and time.monotonic() < stop_at:
            plan, call = self._deferred.popleft()
            try:
                run_script("release", plan=plan, call=call, redis=redis)
            except ScriptError as error:
                # It would fail again, and block all others. What it would have released expires by itself.
                logger.warning("deferred release dropped", extra={"reason": str(error)})
            except RedisUnavailable:
                self._deferred.appendleft((plan, call))
                raise


liveness = Liveness()
