"""Items that the rows say this process runs, and that none of its threads runs."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from batches.execution.claim import claims_held_by
from batches.execution.settling.settle_fallbacks import settle_with_fallbacks
from relaybatch.db.isolation import run_isolated

if TYPE_CHECKING:
    from batches.execution.in_flight import InFlightItems

logger = logging.getLogger(__name__)

MIN_ORPHAN_AGE_SECONDS = 10.0


def settle_orphans(in_flight: InFlightItems) -> None:
    """Settle this worker's orphans as `worker_lost`: its heartbeat is fresh, so the sweeper never reclaims them."""
    claims = claims_held_by(worker_id=in_flight.worker_id, older_than_seconds=MIN_ORPHAN_AGE_SECONDS)
    # Read after the claims: a thread reserves its item before it claims it.
    reserved = in_flight.reserved()
    for claim in claims:
        if claim.item_id not in reserved:
            logger.error("orphaned item found", extra=claim.log_fields)
            run_isolated("settle_orphan", partial(settle_with_fallbacks, claim), **claim.log_fields)
