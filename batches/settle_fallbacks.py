"""Settling that always ends: what the rows refuse is settled with less, so that no item runs for ever."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from batches.attempts import WORKER_LOST, lost, smallest_event_of
from batches.models import ItemState
from batches.patience import AWAY
from batches.settling import Settlement, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batches.claims import Claim

logger = logging.getLogger(__name__)


def settle_with_fallbacks(claim: Claim, settlement: Settlement | None = None) -> bool:
    """Settle as `settle()` does; without a settlement, as the attempt of a worker that was lost.

    When the database refuses that: as a lost worker's; then discarded, with the smallest event there can be; then
    discarded without one. Raises AWAY, and what it says when it refuses the last of them too.
    """
    *first, last = _from_most_to_least(claim, settlement)
    for make in first:
        try:
            return settle(claim, make())
        except AWAY:
            raise
        except Exception:
            logger.exception("an attempt could not be settled, trying with less", extra=claim.log_ids)
    logger.error("an attempt ends without a usage event", extra=claim.log_ids)
    return settle(claim, last())


def _from_most_to_least(claim: Claim, settlement: Settlement | None) -> Iterator[Callable[[], Settlement]]:
    if settlement:
        yield lambda: settlement
    yield partial(lost, claim)
    yield lambda: Settlement(ItemState.DISCARDED, failure=WORKER_LOST, event=smallest_event_of(claim))
    yield lambda: Settlement(ItemState.DISCARDED, failure=WORKER_LOST)
