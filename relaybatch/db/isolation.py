"""Chores of the sweeper and the watch: what is wrong with one does not keep the others from being done."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from relaybatch.db.outage import AWAY, is_about_rows

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


def attempt(what: str, do: Callable[[], object], **ids: object) -> bool:
    """True when it went well. Logs any error by kind and place; only an outage, which meets all alike, is raised."""
    try:
        do()
    except Exception as error:
        if isinstance(error, AWAY) and not is_about_rows(error):
            raise
        logger.exception("%s broke off", what, extra=ids)
        return False
    return True
