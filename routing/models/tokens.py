"""Inference tokens, as far as they are stored, and the keys that sign them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from relaybatch.ids import uuid7
from routing.models.callers import Project, User

if TYPE_CHECKING:
    from datetime import datetime


class SigningKey(models.Model):
    """An Ed25519 key pair, as raw bytes. One key signs; a retired one only verifies, and its private key is deleted."""

    kid = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    public_key = models.BinaryField(editable=False)
    private_key_encrypted = models.BinaryField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "kid"]
        constraints = [
            models.UniqueConstraint(
                fields=["retired_at"],
                condition=models.Q(retired_at=None),
                nulls_distinct=False,
                name="one_key_signs",
            ),
            models.CheckConstraint(
                condition=models.Q(retired_at=None, private_key_encrypted__isnull=False)
                | models.Q(retired_at__isnull=False, private_key_encrypted__isnull=True),
                name="signing_key_retires_whole",
            ),
        ]

    def __str__(self) -> str:
        return str(self.kid)


class InferenceTokenQuerySet(models.QuerySet["InferenceToken"]):
    def active(self, now: datetime) -> InferenceTokenQuerySet:
        """Neither revoked nor expired."""
        return self.filter(revoked_at=None, expires_at__gt=now)


class InferenceToken(models.Model):
    """A minted token; the token itself is not stored. `version`: its user's `token_version` when it was minted.

    An item that runs later is checked against this row. The row is deleted some time after `expires_at`, unless it is
    the last one of its user.
    """

    jti = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    project = models.ForeignKey(Project, on_delete=models.SET_NULL, null=True)
    version = models.PositiveIntegerField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    revoked_at = models.DateTimeField(null=True)

    objects = InferenceTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-jti"]

    def __str__(self) -> str:
        return str(self.jti)
