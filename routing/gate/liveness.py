"""Which process holds a place in a concurrency limit, or a probe: it says that it lives, or loses them.

A process that runs calls longer than RELAY_WORKER_LOST_S beats (batches/execution/worker_monitor.py does);
the scripts beat with every place that is taken.
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
from routing.gate.redis import PREFIX, RedisUnavailable, ScriptError, client, run_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis import Redis

logger = logging.getLogger(__name__)

HEARTBEATS_PER_LOST_TIMEOUT = 6
# Short, since whoever beats has other things to look after.
REDIS_TIMEOUT_SECONDS = 0.5
DEFERRED_RELEASE_SECONDS = 0.2
MAX_DEFERRED_RELEASES = 1000


class Liveness:
    """`id`: made at a process's start, and again in the child of a fork.

    `owe`: a release that could not be told to Redis, or of which nobody knows whether it arrived; told at a beat.
    """

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self.id = uuid.uuid4().hex
        self._next_heartbeat = 0.0
        self._deferred: deque[tuple[bytes, dict[str, Any]]] = deque(maxlen=MAX_DEFERRED_RELEASES)

    def heartbeat(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Says so when it is time; else does nothing. Never raises for a Redis that is away."""
        if clock() < self._next_heartbeat:
            return
        self._next_heartbeat = clock() + settings.RELAY_WORKER_LOST_S / HEARTBEATS_PER_LOST_TIMEOUT
        try:
            impatient = client(connect_seconds=REDIS_TIMEOUT_SECONDS, answer_seconds=REDIS_TIMEOUT_SECONDS)
            impatient.set(f"{PREFIX}present:{self.id}", 1, px=settings.RELAY_WORKER_LOST_S * 1000)
            self._send_deferred(impatient)
        except (*REDIS_UNAVAILABLE, RedisUnavailable) as error:
            logger.warning("Redis cannot be told that this process lives: %s", type(error).__name__)

    def defer_release(self, *, plan: bytes, call: dict[str, Any]) -> None:
        self._deferred.append((plan, call))

    def _send_deferred(self, by: Redis) -> None:
        """What there is time for: the rest at the next beat."""
        give_up_at = time.monotonic() + DEFERRED_RELEASE_SECONDS
        while self._deferred and time.monotonic() < give_up_at:
            plan, call = self._deferred.popleft()
            try:
                run_script("finish", plan=plan, call=call, redis=by)
            except ScriptError as error:
                # It would fail again, before all the others. What it would release ends by itself.
                logger.warning("a release that Redis does not take is dropped: %s", error)
            except RedisUnavailable:
                self._deferred.appendleft((plan, call))
                raise


liveness = Liveness()
