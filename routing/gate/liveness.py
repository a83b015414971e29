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
from routing.gate.redis import PREFIX, RedisAway, ScriptFailed, client, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis import Redis

logger = logging.getLogger(__name__)

BEATS_A_LOST_TIME = 6
# Short, since whoever beats has other things to look after.
PATIENCE_SECONDS = 0.5
PAYING_SECONDS = 0.2
MOST_OWED = 1000


class Presence:
    """`id`: made at a process's start, and again in the child of a fork.

    `owe`: a release that could not be told to Redis, or of which nobody knows whether it arrived; told at a beat.
    """

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self.id = uuid.uuid4().hex
        self._next_beat = 0.0
        self._owed: deque[tuple[bytes, dict[str, Any]]] = deque(maxlen=MOST_OWED)

    def beat(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Says so when it is time; else does nothing. Never raises for a Redis that is away."""
        if clock() < self._next_beat:
            return
        self._next_beat = clock() + settings.RELAY_WORKER_LOST_S / BEATS_A_LOST_TIME
        try:
            impatient = client(connect_seconds=PATIENCE_SECONDS, answer_seconds=PATIENCE_SECONDS)
            impatient.set(f"{PREFIX}present:{self.id}", 1, px=settings.RELAY_WORKER_LOST_S * 1000)
            self._pay(impatient)
        except (*REDIS_UNAVAILABLE, RedisAway) as error:
            logger.warning("Redis cannot be told that this process lives: %s", type(error).__name__)

    def owe(self, *, plan: bytes, call: dict[str, Any]) -> None:
        self._owed.append((plan, call))

    def _pay(self, by: Redis) -> None:
        """What there is time for: the rest at the next beat."""
        give_up_at = time.monotonic() + PAYING_SECONDS
        while self._owed and time.monotonic() < give_up_at:
            plan, call = self._owed.popleft()
            try:
                run("finish", plan=plan, call=call, by=by)
            except ScriptFailed as error:
                # It would fail again, before all the others. What it would release ends by itself.
                logger.warning("a release that Redis does not take is dropped: %s", error)
            except RedisAway:
                self._owed.appendleft((plan, call))
                raise


presence = Presence()
