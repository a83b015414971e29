"""Renew in the background what calls look up again and again, so that none of them waits for it.

A worker starts the thread. A process without it loads at the next call what is too old, and so does a worker while a
renewal takes too long or fails: nothing gets older by it.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from django.db import connection

from relaybatch.db.connection import release_connection
from relaybatch.db.outage import DATABASE_UNAVAILABLE
from routing.credentials.recheck import CALLER_ROWS
from routing.gate.closed_breakers import CLOSED_BREAKERS
from routing.resolution.resolve import RESOLUTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from routing.ttl_cache import TtlCache

logger = logging.getLogger(__name__)

# Values live for half a second. Early enough for a renewal that takes a tenth of a second, and late enough that it does
# not read the rows much more often than the calls would.
MIN_AGE_SECONDS = 0.33
POLL_INTERVAL_SECONDS = 0.05
# After a second without a renewal. Still between the age at which a value is renewed and its end.
IDLE_POLL_INTERVAL_SECONDS = 0.15
IDLE_AFTER_SECONDS = 1.0

CACHES: tuple[TtlCache[Any, Any], ...] = (CLOSED_BREAKERS, CALLER_ROWS, RESOLUTIONS)


def start_cache_renewal() -> None:
    """Start the thread. Call it after the last fork; it needs no stop."""
    threading.Thread(target=_run, name="cache-renewal", daemon=True).start()


def renew_used() -> bool:
    """Renew what was used since its load and is old enough; False when there was nothing. Never raises."""
    due = [renew for cache in CACHES for renew in cache.due_renewals(min_age_seconds=MIN_AGE_SECONDS)]
    for renew in due:
        _try_to(renew)
    release_connection()
    return bool(due)


def _try_to(renew: Callable[[], None]) -> None:
    try:
        renew()
    except Exception as error:  # noqa: BLE001 -- the next call loads it by itself, and raises where that can be handled
        logger.debug("cache not renewed", extra={"reason": type(error).__name__})
        if isinstance(error, DATABASE_UNAVAILABLE):
            connection.close()


def _run() -> None:
    renewed_at = time.monotonic()
    while True:
        is_idle = time.monotonic() - renewed_at > IDLE_AFTER_SECONDS
        time.sleep(IDLE_POLL_INTERVAL_SECONDS if is_idle else POLL_INTERVAL_SECONDS)
        if renew_used():
            renewed_at = time.monotonic()
