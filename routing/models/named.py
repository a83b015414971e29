"""The base class of the catalog's rows: an id, a unique name, and whether the row is enabled."""

from __future__ import annotations

from django.db import models

from relaybatch.ids import uuid7


class NamedModel(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200, unique=True)
    enabled = models.BooleanField(default=True)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
