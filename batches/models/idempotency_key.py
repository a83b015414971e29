"""The stored response of a create with an Idempotency-Key."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models.functions import Now

from batches.models.owner import Owner

IDEMPOTENCY_HOURS = 24


class IdempotencyKeyQuerySet(models.QuerySet["IdempotencyKey"]):
    def unexpired(self) -> IdempotencyKeyQuerySet:
        return self.filter(created_at__gte=Now() - timedelta(hours=IDEMPOTENCY_HOURS))

    def expired(self) -> IdempotencyKeyQuerySet:
        return self.filter(created_at__lt=Now() - timedelta(hours=IDEMPOTENCY_HOURS))


class IdempotencyKey(models.Model):
    """The stored response of a create, kept for 24 h. Written with the batch: both exist or neither does."""

    owner = models.ForeignKey(Owner, on_delete=models.CASCADE)
    key_hash = models.BinaryField(max_length=32)
    body_hash = models.BinaryField(max_length=32)
    status = models.SmallIntegerField()
    answer = models.BinaryField()
    created_at = models.DateTimeField()

    objects = IdempotencyKeyQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="idempotency_age")]
        constraints = [models.UniqueConstraint(fields=["owner", "key_hash"], name="idempotency_once")]

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M:%S}"
