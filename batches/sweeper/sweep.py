"""The sweep: what no request and no settled item does by itself. Every step is safe to repeat."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, LiteralString

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from batches.completion.batch_end import end_complete_batch
from batches.completion.expire import expire_batch
from batches.execution.claim import claims_of_lost_workers
from batches.execution.settling.settle_fallbacks import settle_with_fallbacks
from batches.models import Batch
from batches.models.batch import FINALIZING_SQL, VALIDATING_SQL
from batches.models.item import OPEN_SQL, UNPUBLISHED_SQL
from relaybatch.db.isolation import run_isolated
from relaybatch.db.pipeline import execute_prepared

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from batches.execution.claim import Claim

logger = logging.getLogger(__name__)

MAX_ROWS_PER_STEP = 500

# In the order of the partial indexes: of EXISTS the planner, which overestimates, may make a scan of the table.
_BACKLOG: LiteralString = f"""
SELECT EXISTS (SELECT FROM batches_batch WHERE ended_at IS NULL),
    (SELECT id FROM batches_batch WHERE {VALIDATING_SQL} ORDER BY owner_id, id LIMIT 1) IS NOT NULL,
    (SELECT id FROM batches_batch WHERE {FINALIZING_SQL} ORDER BY owner_id, id LIMIT 1) IS NOT NULL,
    coalesce((SELECT min(not_before) FROM batches_batchitem
        WHERE {UNPUBLISHED_SQL} AND not_before IS NOT NULL) <= clock_timestamp(), false)
"""
_COMPLETE_BUT_OPEN = f"""
SELECT b.id FROM batches_batch b WHERE b.ended_at IS NULL AND b.total_items > 0 AND NOT EXISTS (
    SELECT FROM batches_batchitem i WHERE i.batch_id = b.id AND {OPEN_SQL})
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """`has_open_batches`: without any, there is nothing to sweep. `is_due`: some item's `not_before` has passed."""

    has_open_batches: bool
    has_validating: bool
    has_finalizing: bool
    is_due: bool


def read_backlog() -> Backlog:
    """Ask in one cheap statement whether there is anything to do: an idle sweeper runs no other one."""
    return Backlog(*execute_prepared(_BACKLOG, [])[0])


def expire_overdue() -> None:
    overdue = Batch.objects.open().filter(expires_at__lte=Now()).values_list("id", flat=True)
    for batch_id in overdue.order_by("expires_at", "id")[:MAX_ROWS_PER_STEP]:
        run_isolated("expire_batch", partial(expire_batch, batch_id), batch_id=batch_id)


def reclaim_lost_items(*, may_declare_lost: Callable[[], bool]) -> None:
    """Settle the running items of lost workers as `worker_lost`: retried while attempts are left, else discarded."""
    tried: list[uuid.UUID] = []
    while claims := claims_of_lost_workers(
        lost_seconds=settings.RELAY_WORKER_LOST_S, exclude=tried, limit=MAX_ROWS_PER_STEP
    ):
        # Asked after each query: the database may have been suspended during it, and with it every heartbeat.
        if not may_declare_lost():
            return
        for claim in claims:
            run_isolated("reclaim_item", partial(_reclaim, claim), **claim.log_fields)
        tried += [claim.item_id for claim in claims]


def _reclaim(claim: Claim) -> None:
    logger.warning("worker lost", extra=claim.log_fields)
    settle_with_fallbacks(claim)


def end_complete_batches() -> None:
    """End batches without an open item, but those that have no items yet.

    Settling does that by itself; this repairs rows changed by hand.
    """
    with connection.cursor() as cursor:
        cursor.execute(_COMPLETE_BUT_OPEN)
        batch_ids = [row[0] for row in cursor.fetchall()]
    for batch_id in batch_ids:
        run_isolated("end_batch", partial(end_complete_batch, batch_id), batch_id=batch_id)
