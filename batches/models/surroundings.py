"""Worker processes, the answers of creates that may be sent again, and the payload store's rows."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from batches.models.batch import Owner
from relaybatch.ids import uuid7

IDEMPOTENCY_HOURS = 24
# The official SDKs give up on an answer after 10 minutes, and send again a few seconds later.
RESEND_MINUTES = 11


class WorkerQuerySet(models.QuerySet["Worker"]):
    def alive(self) -> WorkerQuerySet:
        return self.filter(seen_at__gte=Now() - timedelta(seconds=settings.RELAY_WORKER_LOST_S))

    def lost(self) -> WorkerQuerySet:
        return self.filter(seen_at__lt=Now() - timedelta(seconds=settings.RELAY_WORKER_LOST_S))


class Worker(models.Model):
    """A process that runs items; a fresh id each start. Unseen for RELAY_WORKER_LOST_S, it is dead."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    slots = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    objects = WorkerQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "id"]
        indexes = [models.Index(fields=["seen_at"], name="worker_seen")]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class PolicyPause(models.Model):
    """Until when a policy's items are not published: its limit is spent, or no host key of it works.

    With `at_once` over 0, so many items of each owner may be out in spite of it: as many as may run at once.
    """

    policy_id = models.UUIDField(primary_key=True)
    until = models.DateTimeField()
    reason = models.CharField(max_length=20)
    at_once = models.PositiveIntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"{self.reason} until {self.until:%H:%M:%S}"


class IdempotencyKeyQuerySet(models.QuerySet["IdempotencyKey"]):
    def unexpired(self) -> IdempotencyKeyQuerySet:
        return self.filter(created_at__gte=Now() - timedelta(hours=IDEMPOTENCY_HOURS))

    def expired(self) -> IdempotencyKeyQuerySet:
        return self.filter(created_at__lt=Now() - timedelta(hours=IDEMPOTENCY_HOURS))


class IdempotencyKey(models.Model):
    """The stored answer of a create, for 24 h. Written with the batch: both exist or neither does."""

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


class KeylessCreateQuerySet(models.QuerySet["KeylessCreate"]):
    def expired(self) -> KeylessCreateQuerySet:
        return self.filter(arrived_at__lt=Now() - timedelta(minutes=RESEND_MINUTES))


class KeylessCreate(models.Model):
    """A create without Idempotency-Key, for 11 minutes: its SDK may send it again. Written with the batch: both exist
    or neither does.

    `resends`: the highest count of resends with which its answer was given. `status` 0: this send was refused.
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


class PayloadChunk(models.Model):
    """A piece (1 MiB at most) of an object, where payloads live in the database."""

    name = models.CharField(max_length=200)
    part = models.IntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "part"], name="payload_chunk_once")]

    def __str__(self) -> str:
        return f"{self.name}#{self.part}"


class PayloadStoreMark(models.Model):
    """One row: what the marker in the shared payload directory must say, or two replicas see two directories.

    `created_at` is when this database met the store. With `adopted`, the marker was there before: what the store
    holds, now or later, may be another database's.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    value = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())
    adopted = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="payload_store_one_mark")]

    def __str__(self) -> str:
        return self.value
