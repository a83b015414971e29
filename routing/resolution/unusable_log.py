"""What of the catalog cannot be used now, told in the log when it begins: rows are read again twice a second."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

logger = logging.getLogger(__name__)

_told: dict[Hashable, str] = {}


def tell_obstacle(row: Hashable, words: str) -> None:
    """`row`: the id of what cannot be used. The words name it, and hold no secret."""
    if _told.get(row) != words:
        _told[row] = words
        logger.warning("part of the catalog cannot be used: %s", words)


def no_obstacle(row: Hashable) -> None:
    """What comes back later is told again."""
    _told.pop(row, None)
