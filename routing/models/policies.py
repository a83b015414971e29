"""Policies, with their grants, ordered host keys and key selection; and rate limits."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models

from routing.models.catalog import HostKey
from routing.models.named import NamedModel


class RateLimit(NamedModel):
    pass


class RateLimitRule(models.Model):
    class Strategy(models.TextChoices):
        FIXED_WINDOW = "fixed-window"
        SLIDING_WINDOW = "sliding-window"
        TOKEN_BUCKET = "token-bucket"  # noqa: S105 -- the name of an algorithm

    rate_limit = models.ForeignKey(RateLimit, on_delete=models.CASCADE, related_name="rules")
    position = models.PositiveIntegerField(default=0)
    meter = models.CharField(max_length=40)
    amount = models.BigIntegerField(validators=[MinValueValidator(1)])
    window_seconds = models.PositiveIntegerField(null=True, blank=True)
    strategy = models.CharField(max_length=20, choices=Strategy.choices, blank=True, default="")

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            models.CheckConstraint(condition=models.Q(amount__gte=1), name="rule_amount_positive"),
            # Concurrency counts running calls, so it alone has no window.
            models.CheckConstraint(
                condition=models.Q(meter="concurrency", window_seconds__isnull=True, strategy="")
                | models.Q(~models.Q(meter="concurrency"), ~models.Q(strategy=""), window_seconds__gte=1),
                name="rule_window_fits_meter",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.meter} {self.amount}"


class Policy(NamedModel):
    """What its callers may call. `models_granted`: grants; empty = every model that the policy's host keys reach."""

    class Selection(models.TextChoices):
        PRIORITIZED = "prioritized"
        ROUND_ROBIN = "round-robin"
        LEAST_RECENTLY_USED = "least-recently-used"

    models_granted = ArrayField(models.CharField(max_length=800), default=list, blank=True)
    host_keys = models.ManyToManyField(HostKey, through="PolicyHostKey", related_name="policies")
    key_selection = models.CharField(max_length=20, choices=Selection.choices, default=Selection.PRIORITIZED)
    rate_limit = models.ForeignKey(RateLimit, on_delete=models.PROTECT, null=True, blank=True)

    class Meta(NamedModel.Meta):
        verbose_name_plural = "policies"


class PolicyHostKey(models.Model):
    """A host key of a policy. Host keys are tried in the order of `position`."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE)
    host_key = models.ForeignKey(HostKey, on_delete=models.CASCADE)
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["policy", "host_key"], name="policy_host_key_once")]

    def __str__(self) -> str:
        return f"#{self.position}"
