"""A policy whose items are published more slowly, or not at all, for a while."""

from __future__ import annotations

from django.db import models


class PolicyPause(models.Model):
    """Until when a policy's items are held back, because its limit is spent or none of its host keys works.

    `concurrency_limit` 0: none of its items is published. Over 0: each owner may have that many of them in its window,
    which is one more than may run, so that a slot finds the next one waiting.
    """

    policy_id = models.UUIDField(primary_key=True)
    until = models.DateTimeField()
    reason = models.CharField(max_length=20)
    concurrency_limit = models.PositiveIntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"{self.reason} until {self.until:%H:%M:%S}"
