"""Chores of the sweeper and the watch: what is wrong with one does not keep the others from being done."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from relaybatch.db.outage import DATABASE_UNAVAILABLE, is_row_error

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


def run_isolated(step: str, action: Callable[[], object], **ids: object) -> bool:
    """True when it went well. Logs any error by kind and place; only an outage, which meets all alike, is raised."""
    try:
        action()
    except Exception as error:
        if isinstance(error, DATABASE_UNAVAILABLE) and not is_row_error(error):
            raise
        logger.exception("%s broke off", step, extra=ids)
        return False
    return True
