"""Settling that always ends: what the rows refuse is settled with less, so that no item runs for ever."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from batches.execution.attempt_event import WORKER_LOST, minimal_worker_lost_event, worker_lost_settlement
from batches.execution.settle import Settlement, settle
from batches.models import ItemState
from relaybatch.db.outage import DATABASE_UNAVAILABLE, is_row_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batches.execution.claim import Claim

logger = logging.getLogger(__name__)


class SettleRejected(Exception):  # noqa: N818
    """The item's row takes nothing at all. It stays `running`, and is looked at again by whoever cares for such."""


def settle_with_fallbacks(claim: Claim, settlement: Settlement | None = None) -> bool:
    """Settle as `settle()` does; without a settlement, as the attempt of a worker that was lost.

    When the database refuses that: as a lost worker's; then discarded, with the smallest event there can be; then
    discarded without one. Raises AWAY for an outage, and SettleRefused when the last of them is refused too.
    """
    for build_settlement in _fallbacks(claim, settlement):
        try:
            return settle(claim, build_settlement())
        except Exception as error:
            if isinstance(error, DATABASE_UNAVAILABLE) and not is_row_error(error):
                raise
            logger.exception("an attempt could not be settled", extra=claim.log_fields)
    raise SettleRejected


def _fallbacks(claim: Claim, settlement: Settlement | None) -> Iterator[Callable[[], Settlement]]:
    if settlement:
        yield lambda: settlement
    yield partial(worker_lost_settlement, claim)
    yield lambda: Settlement(ItemState.DISCARDED, failure=WORKER_LOST, event=minimal_worker_lost_event(claim))
    logger.error("an attempt ends without a usage event", extra=claim.log_fields)
    yield lambda: Settlement(ItemState.DISCARDED, failure=WORKER_LOST)
