"""What of the catalog cannot be used now, told in the log when it begins: rows are read again twice a second."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

logger = logging.getLogger(__name__)

_reported: dict[Hashable, str] = {}


def log_unusable(row: Hashable, message: str) -> None:
    """`row`: the id of what cannot be used. The words name it, and hold no secret."""
    if _reported.get(row) != message:
        _reported[row] = message
        logger.warning("part of the catalog cannot be used: %s", message)


def mark_usable(row: Hashable) -> None:
    """What comes back later is told again."""
    _reported.pop(row, None)
