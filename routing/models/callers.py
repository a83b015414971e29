"""Teams, projects, service accounts, users, and the relay keys that they call with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AbstractUser
from django.db import models

from relaybatch.ids import uuid7
from routing.models.named import NamedModel

if TYPE_CHECKING:
    from django.db.models.deletion import Collector


def protect_keys_that_may_call(
    collector: Collector, field: models.ForeignKey[Any], keys: models.QuerySet[RelayKey], using: str
) -> None:
    """`on_delete` of a key's own policy: protect it while a key that is not revoked has it.

    Without the policy, the key would fall back to its principal's, which may allow more. A revoked key never works
    again, so its policy is set to NULL.
    """
    if may_call := keys.filter(revoked_at=None):
        models.PROTECT(collector, field, may_call, using)
    models.SET_NULL(collector, field, keys.exclude(revoked_at=None), using)


# Django then passes the rows as an unevaluated query set.
protect_keys_that_may_call.lazy_sub_objs = True  # type: ignore[attr-defined]


class Team(NamedModel):
    pass


class Project(NamedModel):
    """`included_nanos`: what the project may use in a calendar month (UTC), in nano-units; null = no limit.

    `unpriced_closes`: the first unpriced call of a month ends the included usage until the next month.
    """

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="projects")
    included_nanos = models.BigIntegerField(null=True, blank=True)
    included_currency = models.CharField(max_length=3, blank=True, default="")
    # `db_default`, since processes of an earlier release insert projects without this column.
    unpriced_closes = models.BooleanField(default=False, db_default=False)


class ServiceAccount(NamedModel):
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="service_accounts")
    policy = models.ForeignKey("Policy", on_delete=models.SET_NULL, null=True, blank=True)

    @property
    def may_call(self) -> bool:
        return self.enabled


class User(AbstractUser):
    """Django's user as a caller, with a project and a policy. Raising `token_version` revokes all earlier tokens."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, null=True, blank=True)
    policy = models.ForeignKey("Policy", on_delete=models.SET_NULL, null=True, blank=True)
    token_version = models.PositiveIntegerField(default=0)

    @property
    def may_call(self) -> bool:
        return self.is_active


class RelayKey(models.Model):
    """A caller's credential. Only the SHA-256 (hex) of the value is stored; the value itself is shown once.

    After a rotation the previous value works until `grace_until`.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    service_account = models.ForeignKey(ServiceAccount, on_delete=models.CASCADE, null=True, blank=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True)
    policy = models.ForeignKey("Policy", on_delete=protect_keys_that_may_call, null=True, blank=True)
    key_hash = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(max_length=20, editable=False)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    previous_key_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    grace_until = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-created_at", "id"]
        indexes = [
            models.Index(
                fields=["previous_key_hash"],
                name="relay_key_previous",
                condition=~models.Q(previous_key_hash=""),
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(service_account__isnull=False, user__isnull=True)
                | models.Q(service_account__isnull=True, user__isnull=False),
                name="relay_key_has_one_principal",
            )
        ]

    def __str__(self) -> str:
        return f"{self.prefix}…"
