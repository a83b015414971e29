"""The stored response of a create without an Idempotency-Key, for SDKs that resend it."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models.functions import Now

from batches.models.owner import Owner

# The official SDKs time out after 10 minutes, and resend a few seconds later.
RESEND_MINUTES = 11


class KeylessCreateQuerySet(models.QuerySet["KeylessCreate"]):
    def expired(self) -> KeylessCreateQuerySet:
        return self.filter(arrived_at__lt=Now() - timedelta(minutes=RESEND_MINUTES))


class KeylessCreate(models.Model):
    """The stored response of a create without Idempotency-Key, kept for 11 minutes. Written with the batch: both exist
    or neither does.

    `resends`: the highest resend count that got this response. `status` 0: this request was rejected.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, db_index=False)
    digest = models.BinaryField(max_length=32)
    resends = models.SmallIntegerField()
    status = models.SmallIntegerField()
    answer = models.BinaryField()
    arrived_at = models.DateTimeField()

    objects = KeylessCreateQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["digest", "arrived_at"], name="keyless_newest"),
            models.Index(fields=["arrived_at"], name="keyless_age"),
        ]

    def __str__(self) -> str:
        return f"{self.arrived_at:%Y-%m-%d %H:%M:%S}"
