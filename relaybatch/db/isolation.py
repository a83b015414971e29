"""Isolated steps of the sweeper and the worker monitor: one that fails does not keep the others from running."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from relaybatch.db.outage import DATABASE_UNAVAILABLE, is_row_error

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


def run_isolated(step: str, action: Callable[[], object], **fields: object) -> bool:
    """Run one step; True when it succeeded. Any error is logged by kind and place, with `step` and `fields`.

    Raises DATABASE_UNAVAILABLE for an outage, which all steps would meet alike.
    """
    try:
        action()
    except Exception as error:
        if isinstance(error, DATABASE_UNAVAILABLE) and not is_row_error(error):
            raise
        logger.exception("step failed", extra={"step": step, **fields})
        return False
    return True


def repeat_for_seconds(step: Callable[[], bool], seconds: float) -> None:
    """Repeat the step while it returns True, but begin none after `seconds`."""
    stop_at = time.monotonic() + seconds
    while step() and time.monotonic() < stop_at:
        pass
