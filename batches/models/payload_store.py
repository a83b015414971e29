"""The payload store's rows: its marker, and payloads that are kept in the database."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


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
    """The value that the marker in the payload store must have (one row). It shows whether replicas see the same store.

    `created_at`: when this database first opened the store. `adopted`: the marker existed before, so that what the
    store holds, now or later, may belong to another database.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    value = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())
    adopted = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="payload_store_one_mark")]

    def __str__(self) -> str:
        return self.value
