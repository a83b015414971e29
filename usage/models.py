"""Usage events, and the running totals that are kept in the same transaction."""

from __future__ import annotations

from django.db import models

from relaybatch.ids import uuid7


class TokenCounts(models.Model):
    """Tokens by meter: four that never overlap, then parts of them. Null in an event = the upstream didn't say."""

    input = models.BigIntegerField(null=True)
    cache_read = models.BigIntegerField(null=True)
    cache_write = models.BigIntegerField(null=True)
    output = models.BigIntegerField(null=True)
    reasoning = models.BigIntegerField(null=True)
    cache_write_5m = models.BigIntegerField(null=True)
    cache_write_1h = models.BigIntegerField(null=True)

    class Meta:
        abstract = True


class UsageEvent(TokenCounts):
    """What one counted attempt did and cost. Append-only; names are snapshots, so history outlives the catalog.

    `status` is the upstream's, 0 when none answered. `cost_nanos` is in nano-units of `currency`; null =
    unpriced, which is not 0. `late`: the answer of a worker that was declared lost: it costs, but is no request.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    at = models.DateTimeField()
    source = models.CharField(max_length=10)
    owner = models.CharField(max_length=80)
    # The batch's row and the id its callers know it by; null for a live call. No foreign key: batches go, events stay.
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
    team = models.CharField(max_length=200, blank=True, default="")
    principal_kind = models.CharField(max_length=20, blank=True, default="")
    principal_id = models.CharField(max_length=40, blank=True, default="")
    credential_kind = models.CharField(max_length=10, blank=True, default="")
    credential_id = models.CharField(max_length=40, blank=True, default="")
    currency = models.CharField(max_length=3)
    cost_nanos = models.BigIntegerField(null=True)
    cost_breakdown = models.JSONField(default=dict)
    pricing = models.CharField(max_length=220, blank=True, default="")

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="usage_event_newest"),
            models.Index(fields=["owner", "-at", "-id"], name="usage_event_owner_newest"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["batch_id", "item_idx", "attempt", "late"], name="usage_event_once_an_attempt"
            )
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.status}"


class UsageTotal(TokenCounts):
    """A running total of one scope (`batch:<uuid>`, `project:<uuid>:2026-11`), summed over its shards.

    Each slot adds to a shard of its own, so that settling transactions don't queue behind one row.
    """

    scope = models.CharField(max_length=80)
    shard = models.SmallIntegerField()
    events = models.BigIntegerField(default=0)
    unpriced = models.BigIntegerField(default=0)
    cost_nanos = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "shard"], name="usage_total_shard")]

    def __str__(self) -> str:
        return self.scope
