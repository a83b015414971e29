"""A usage event: what one counted attempt used and cost."""

from __future__ import annotations

from datetime import UTC
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Trunc

from relaybatch.ids import uuid7
from usage.models.event_sums import event_sums

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from routing.credentials.credential import Credential
    from usage.models.event_filter import EventFilter

_TRUNC_KINDS = {"1m": "minute", "1h": "hour", "1d": "day"}


class UsageEventQuerySet(models.QuerySet["UsageEvent"]):
    def visible_to(self, credential: Credential) -> UsageEventQuerySet:
        return self.filter(owner=credential.owner)

    def matching(self, event_filter: EventFilter) -> UsageEventQuerySet:
        events = self.filter(**{f"{column}__in": values for column, values in event_filter.columns.items()})
        if event_filter.statuses:
            events = events.filter(status__in=event_filter.statuses)
        if event_filter.status_classes:
            ranges = (Q(status__range=(n * 100, n * 100 + 99)) for n in event_filter.status_classes)
            events = events.filter(reduce(or_, ranges))
        if event_filter.start:
            events = events.filter(at__gte=event_filter.start)
        return events.filter(at__lt=event_filter.end) if event_filter.end else events

    def newest_first(self) -> UsageEventQuerySet:
        return self.order_by("-at", "-id")

    def older_than(self, *, at: datetime, event_id: uuid.UUID) -> UsageEventQuerySet:
        """Events behind that one in the order of `newest_first()`."""
        # In this form the index on (at, id) is entered at that event; with an OR it would be read from its beginning.
        return self.filter(at__lte=at).exclude(at=at, id__gte=event_id)

    def totals_by_item(self, batch_id: uuid.UUID, *, first_idx: int, last_idx: int) -> list[dict[str, Any]]:
        """`event_sums()` of each item, for a range of a batch's items."""
        events = self.filter(batch_id=batch_id, item_idx__range=(first_idx, last_idx)).order_by()
        return [dict(row) for row in events.values("item_idx").annotate(**event_sums()).order_by("item_idx")]

    def totals(self) -> dict[str, Any]:
        return self.aggregate(**event_sums())

    def totals_by_group(self, columns: Sequence[str], *, limit: int) -> list[dict[str, Any]]:
        """`event_sums()` of each group, the most expensive first."""
        costliest_first = (F("cost").desc(nulls_last=True), "-requests", *columns)
        groups: Iterable[Any] = (
            self.order_by().values(*columns).annotate(**event_sums()).order_by(*costliest_first)[:limit]
        )
        return list(groups)

    def totals_by_interval(
        self, columns: Sequence[str], *, interval: str, limit: int, durations: bool = True
    ) -> list[dict[str, Any]]:
        """`event_sums()` of each group and time `bucket` (UTC), in that order. `interval`: `1m`, `1h` or `1d`."""
        bucket = Trunc("at", _TRUNC_KINDS[interval], tzinfo=UTC)
        buckets = self.order_by().annotate(bucket=bucket).values(*columns, "bucket")
        sums = event_sums(durations=durations)
        return list(buckets.annotate(**sums).order_by(*columns, "bucket")[:limit])


class UsageEvent(models.Model):
    """One counted attempt: what it used and cost. Append-only; names are snapshots, so history outlives the catalog.

    `status` is the upstream's, 0 when none answered. `cost_nanos` is in nano-units of `currency`; null = unpriced,
    which is not 0. `late`: the answer of a worker that had been declared lost; it adds cost, and no request.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    at = models.DateTimeField()
    source = models.CharField(max_length=10)
    owner = models.CharField(max_length=80)
    # The batch's row id, and the id that callers know; null for a live call. No foreign key: events outlive batches.
    batch_id = models.UUIDField(null=True)
    public_batch_id = models.CharField(max_length=80, blank=True, default="")
    item_idx = models.IntegerField(null=True)
    custom_id = models.TextField(null=True)  # noqa: DJ001 -- null where the dialect has none
    attempt = models.SmallIntegerField(default=1)
    late = models.BooleanField(default=False)
    status = models.SmallIntegerField(default=0)
    error_kind = models.CharField(max_length=40, blank=True, default="")
    duration_ms = models.IntegerField(default=0)
    upstream_ms = models.IntegerField(default=0)
    keys_tried = models.SmallIntegerField(default=0)
    requested_model = models.CharField(max_length=300, blank=True, default="")
    model = models.CharField(max_length=300, blank=True, default="")
    provider = models.CharField(max_length=200, blank=True, default="")
    host = models.CharField(max_length=200, blank=True, default="")
    host_key = models.CharField(max_length=200, blank=True, default="")
    adapter = models.CharField(max_length=40, blank=True, default="")
    policy = models.CharField(max_length=200, blank=True, default="")
    project = models.CharField(max_length=200, blank=True, default="")
    # A name may be given to another project later, so monthly totals are checked against the events by this id.
    project_id = models.UUIDField(null=True)
    team = models.CharField(max_length=200, blank=True, default="")
    principal_kind = models.CharField(max_length=20, blank=True, default="")
    principal_id = models.CharField(max_length=40, blank=True, default="")
    credential_kind = models.CharField(max_length=10, blank=True, default="")
    credential_id = models.CharField(max_length=40, blank=True, default="")
    # Tokens by meter: four that never overlap, then parts of them. Null = the upstream reported none.
    input = models.BigIntegerField(null=True)
    cache_read = models.BigIntegerField(null=True)
    cache_write = models.BigIntegerField(null=True)
    output = models.BigIntegerField(null=True)
    reasoning = models.BigIntegerField(null=True)
    cache_write_5m = models.BigIntegerField(null=True)
    cache_write_1h = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3)
    cost_nanos = models.BigIntegerField(null=True)
    # As the upstream reports it, in nano-dollars whatever `currency` is; never added up.
    upstream_cost_nanos = models.BigIntegerField(null=True)
    cost_breakdown = models.JSONField(default=dict)
    pricing = models.CharField(max_length=220, blank=True, default="")

    objects = UsageEventQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="usage_event_newest"),
            models.Index(fields=["owner", "-at", "-id"], name="usage_event_owner_newest"),
            # Callers filter by the id that they know. Its values repeat, so this is the smallest index.
            models.Index(fields=["public_batch_id"], name="usage_event_public_batch"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["batch_id", "item_idx", "attempt", "late"], name="usage_event_once_an_attempt"
            ),
            models.CheckConstraint(
                condition=Q(batch_id=None, public_batch_id="", item_idx=None)
                | Q(batch_id__isnull=False, item_idx__isnull=False) & ~Q(public_batch_id=""),
                name="usage_event_batch_has_both_ids",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.status}"
