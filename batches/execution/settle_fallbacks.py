"""Settling that always ends: what the rows refuse is settled with less, so that no item runs for ever."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from batches.execution.attempt_event import WORKER_LOST, lost, smallest_event_of
from batches.execution.settle import Settlement, settle
from batches.models import ItemState
from relaybatch.db.outage import AWAY, is_about_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batches.execution.claim import Claim

logger = logging.getLogger(__name__)


class SettleRefused(Exception):  # noqa: N818
    """The item's row takes nothing at all. It stays `running`, and is looked at again by whoever cares for such."""


def settle_with_fallbacks(claim: Claim, settlement: Settlement | None = None) -> bool:
    """Settle as `settle()` does; without a settlement, as the attempt of a worker that was lost.

    When the database refuses that: as a lost worker's; then discarded, with the smallest event there can be; then
    discarded without one. Raises AWAY for an outage, and SettleRefused when the last of them is refused too.
    """
    for make in _from_most_to_least(claim, settlement):
        try:
            return settle(claim, make())
        except Exception as error:
            if isinstance(error, AWAY) and not is_about_rows(error):
                raise
            logger.exception("an attempt could not be settled", extra=claim.log_ids)
    raise SettleRefused


def _from_most_to_least(claim: Claim, settlement: Settlement | None) -> Iterator[Callable[[], Settlement]]:
    if settlement:
        yield lambda: settlement
    yield partial(lost, claim)
    yield lambda: Settlement(ItemState.DISCARDED, failure=WORKER_LOST, event=smallest_event_of(claim))
    logger.error("an attempt ends without a usage event", extra=claim.log_ids)
    yield lambda: Settlement(ItemState.DISCARDED, failure=WORKER_LOST)
