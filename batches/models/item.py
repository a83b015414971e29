"""An item: its state, its fence, and where its request and response are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from django.contrib.postgres.aggregates import StringAgg
from django.db import connection, models
from django.db.models import Q
from django.db.models.functions import Substr

from batches.models.batch import Batch
from batches.models.owner import Owner
from batches.states import ITEM_STATES, ItemState
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Sequence

_CHOICES = [(state, state.capitalize()) for state in ITEM_STATES]

OPEN = Q(state__in=(ItemState.AVAILABLE, ItemState.RUNNING))
FAILED = Q(state__in=(ItemState.DISCARDED, ItemState.CANCELLED, ItemState.EXPIRED))
# An item's message is sent, or a worker has it: what an owner's window counts.
IN_WINDOW = Q(state=ItemState.RUNNING) | Q(state=ItemState.AVAILABLE, published_at__isnull=False)

# The same conditions in SQL, worded as the partial indexes are. No other table of these statements has such columns.
OPEN_SQL = "state IN ('available', 'running')"
UNPUBLISHED_SQL = "state = 'available' AND published_at IS NULL"
PUBLISHED_SQL = "state = 'available' AND published_at IS NOT NULL"
IN_WINDOW_SQL = f"(state = 'running' OR ({PUBLISHED_SQL}))"
DUE_SQL = f"{UNPUBLISHED_SQL} AND (not_before IS NULL OR not_before <= clock_timestamp())"

# Items never claimed are the end of their batch: they are published in order of idx (publishing/owner_window.py), and
# claimed once they were published (execution/claim.py). So their number follows from the first one's idx. Waiting items
# before it have run already, and are few. Those in the window and those that failed have small indexes of their own.
# Completed ones, which are most in the end, are the rest.
# Rows are compared whole, so that only the index of due items serves: with equalities the planner may take the batch's
# own index, and walk over all of its completed items. OFFSET 0: else the first idx is looked up wherever it is named.
_COUNTS = f"""
SELECT b.id, b.total_items - unclaimed.first_idx + again.items + in_window.available, in_window.running,
    unclaimed.first_idx - again.items - in_window.available - in_window.running
        - failed.discarded - failed.cancelled - failed.expired,
    failed.discarded, failed.cancelled, failed.expired, again.reasons
FROM batches_batch b
CROSS JOIN LATERAL (SELECT coalesce((SELECT idx FROM batches_batchitem
    WHERE (owner_id, batch_id) >= (b.owner_id, b.id) AND (owner_id, batch_id) <= (b.owner_id, b.id)
        AND {UNPUBLISHED_SQL} AND claim_no = 0
    ORDER BY owner_id, batch_id, idx LIMIT 1), b.total_items) AS first_idx OFFSET 0) AS unclaimed
CROSS JOIN LATERAL (SELECT coalesce(sum(items), 0)::int AS items,
        jsonb_object_agg(waiting_reason, items) FILTER (WHERE waiting_reason <> '')::text AS reasons
    FROM (SELECT waiting_reason, count(*) AS items FROM batches_batchitem
        WHERE (owner_id, batch_id, idx) >= (b.owner_id, b.id, 0)
            AND (owner_id, batch_id, idx) < (b.owner_id, b.id, unclaimed.first_idx) AND {UNPUBLISHED_SQL}
        GROUP BY waiting_reason) AS by_reason) AS again
CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE state = 'available') AS available,
        count(*) FILTER (WHERE state = 'running') AS running FROM batches_batchitem
    WHERE owner_id = b.owner_id AND batch_id = b.id AND {IN_WINDOW_SQL}) AS in_window
CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE state = 'discarded') AS discarded,
        count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE state = 'expired') AS expired FROM batches_batchitem
    WHERE batch_id = b.id AND state IN ('discarded', 'cancelled', 'expired')) AS failed
WHERE b.id = ANY(%s)
"""


class ItemCounts(NamedTuple):
    """`by_state`: only states that occur. `waiting`: items that wait to run once more, by waiting reason."""

    by_state: dict[str, int]
    waiting: dict[str, int]


class BatchItemQuerySet(models.QuerySet["BatchItem"]):
    def of(self, batch: Batch) -> BatchItemQuerySet:
        return self.filter(batch_id=batch.id).order_by("idx")

    def item_counts(self, batch_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, ItemCounts]:
        """Count the items of batches, all of one instant, without reading each of them."""
        with connection.cursor() as cursor:
            cursor.execute(_COUNTS, [list(batch_ids)])
            return {
                batch_id: ItemCounts(_occurring(counts), json.loads(reasons or "{}"))
                for batch_id, *counts, reasons in cursor.fetchall()
            }

    def counts_by_batch(self, batch_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, dict[str, int]]:
        """Count items: `{batch: {state: count}}`, only states that occur, all of one instant."""
        return {batch_id: counts.by_state for batch_id, counts in self.item_counts(batch_ids).items()}

    def page(self, batch_id: uuid.UUID, *, after_idx: int, states: Sequence[str] = ()) -> BatchItemQuerySet:
        """Return the batch's items after `after_idx`, by idx; to be sliced."""
        items = self.filter(batch_id=batch_id, idx__gt=after_idx).order_by("idx")
        return items.filter(state__in=states) if states else items

    def state_letters(self, batch_id: uuid.UUID) -> str:
        """Return one letter per item, by idx: the second one of its state, which differs between all states.

        Reading 50,000 rows takes four times as long, and building their JSON three times.
        """
        letters = StringAgg(Substr("state", 2, 1), delimiter="", order_by="idx")
        return self.filter(batch_id=batch_id).aggregate(letters=letters)["letters"] or ""


def _occurring(counts: Iterable[int]) -> dict[str, int]:
    return {state: count for state, count in zip(ITEM_STATES, counts, strict=True) if count}


class BatchItem(models.Model):
    """`claim_no` is the fence: it rises at every claim and never falls, and every settle names it.

    `attempt` counts attempts; an attempt that is given back is taken off again. `excused`: those that ended with 401 or
    403, taken to be about our host key and left out of `max_attempts`; `excused_403`: those with 403. The request is
    `request_length` bytes at `request_offset` of the batch's packed requests; the response is an `ItemResponse`, or an
    object of its own, named by the claim.
    The foreign keys have no database constraint: their triggers cost a third of storing 50,000 items, and rows
    are written and removed in one place each.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    batch = models.ForeignKey(
        Batch, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="items"
    )
    owner = models.ForeignKey(
        Owner, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    idx = models.IntegerField()
    custom_id = models.TextField(null=True)  # noqa: DJ001 -- null where the dialect has none
    state = models.CharField(max_length=10, choices=_CHOICES, db_default=ItemState.AVAILABLE.value)
    attempt = models.SmallIntegerField(db_default=0)
    excused = models.SmallIntegerField(db_default=0)
    excused_403 = models.SmallIntegerField(db_default=0)
    claim_no = models.IntegerField(db_default=0)
    worker_id = models.UUIDField(null=True)
    published_at = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    waiting_reason = models.CharField(max_length=20, blank=True, db_default="")
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    request_offset = models.BigIntegerField()
    request_length = models.IntegerField()
    response_length = models.BigIntegerField(null=True)
    error_code = models.CharField(max_length=40, blank=True, db_default="")
    error = models.TextField(blank=True, db_default="")
    upstream_status = models.SmallIntegerField(null=True)
    # The upstream's name for the call: its header `x-request-id` or `request-id`; empty where it sent none.
    upstream_request_id = models.CharField(max_length=200, blank=True, db_default="")
    # The first 4 KiB of the upstream's error body, as bytes: text columns refuse NUL and half characters.
    upstream_error = models.BinaryField(null=True)

    objects = BatchItemQuerySet.as_manager()

    class Meta:
        ordering = ["batch_id", "idx"]
        # Requests, responses and upstream errors are the callers' own: viewing a row does not show them.
        permissions = [("view_payload", "Can view the request and the response of an item")]
        indexes = [
            models.Index(
                fields=["owner", "batch", "idx"],
                name="item_due",
                condition=Q(state=ItemState.AVAILABLE, published_at=None),
            ),
            models.Index(fields=["owner"], name="item_in_flight", condition=IN_WINDOW),
            models.Index(fields=["batch", "state"], name="item_failed", condition=FAILED),
            models.Index(
                fields=["not_before"],
                name="item_waiting",
                condition=Q(state=ItemState.AVAILABLE, published_at=None, not_before__isnull=False),
            ),
        ]
        constraints = [
            # Covering `state`, so that final counts and item lists read the index alone.
            models.UniqueConstraint(fields=["batch", "idx"], include=["state"], name="item_once"),
            models.CheckConstraint(
                condition=Q(state=ItemState.RUNNING, worker_id__isnull=False) | ~Q(state=ItemState.RUNNING),
                name="item_running_has_worker",
            ),
            models.CheckConstraint(
                condition=Q(OPEN, finished_at=None) | Q(~OPEN, finished_at__isnull=False),
                name="item_final_has_time",
            ),
            models.CheckConstraint(
                condition=Q(state=ItemState.DISCARDED) & ~Q(error_code="") | ~Q(state=ItemState.DISCARDED),
                name="item_discarded_has_code",
            ),
            models.CheckConstraint(
                condition=Q(state=ItemState.COMPLETED, response_length__isnull=False)
                | ~Q(state=ItemState.COMPLETED),
                name="item_completed_has_response",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.batch_id}[{self.idx}]"
