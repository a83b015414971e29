"""Log which part of the catalog cannot be used: once when it begins, although the rows are read twice a second."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

logger = logging.getLogger(__name__)

_reported: dict[Hashable, str] = {}


def log_unusable(row: Hashable, message: str) -> None:
    """Log that the row cannot be used, unless that was logged already. The message names the row, and no secret."""
    if _reported.get(row) != message:
        _reported[row] = message
        logger.warning("catalog row unusable", extra={"reason": message})


def mark_usable(row: Hashable) -> None:
    """Forget the row's message, so that the next problem is logged again."""
    _reported.pop(row, None)
