"""Settling that always ends: what the database rejects is settled with less, so that no item stays `running`."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from batches.execution.attempt_event import WORKER_LOST, minimal_worker_lost_event, worker_lost_settlement
from batches.execution.retry_policy import Settlement
from batches.execution.settling.settle import settle
from batches.states import ItemState
from relaybatch.db.outage import DATABASE_UNAVAILABLE, is_row_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batches.execution.claim import Claim

logger = logging.getLogger(__name__)


class SettleRejected(Exception):  # noqa: N818
    """The database rejected every fallback. The item stays `running`, and the sweeper or the monitor tries again."""


def settle_with_fallbacks(claim: Claim, settlement: Settlement | None = None) -> Settlement | None:
    """Settle as `settle()` does; without a settlement, as the attempt of a lost worker. Safe to repeat.

    When the database rejects that: as the attempt of a lost worker; then discarded, with a minimal event; then
    discarded without one. Returns the settlement that was written; None where the item was lost, or settled by an
    earlier try. Raises DATABASE_UNAVAILABLE for an outage, and SettleRejected when the last of them is rejected too.
    """
    for build_settlement in _fallbacks(claim, settlement):
        try:
            attempted = build_settlement()
            return attempted if settle(claim, attempted) else None
        except Exception as error:
            if isinstance(error, DATABASE_UNAVAILABLE) and not is_row_error(error):
                raise
            logger.exception("settle rejected", extra=claim.log_fields)
    raise SettleRejected


def _fallbacks(claim: Claim, settlement: Settlement | None) -> Iterator[Callable[[], Settlement]]:
    if settlement:
        yield lambda: settlement
    yield partial(worker_lost_settlement, claim)
    yield lambda: Settlement(ItemState.DISCARDED, failure=WORKER_LOST, event=minimal_worker_lost_event(claim))
    logger.error("usage event discarded", extra=claim.log_fields)
    yield lambda: Settlement(ItemState.DISCARDED, failure=WORKER_LOST)
