"""Whose items share one publishing window and one quota."""

from __future__ import annotations

from django.db import models

# Nobody else publishes for this owner then. Not the stronger FOR UPDATE: that would wait for every submission in
# progress, whose new batch row holds a key-share lock on its owner. The commit does not wait for the disk: after a
# crash of the server, what was marked as published is published again, and the claim sorts it out.
LOCK_OWNER = """
SELECT set_config('synchronous_commit', 'off', true) FROM batches_owner WHERE id = %s FOR NO KEY UPDATE
"""


class Owner(models.Model):
    """`name`: the submitting relay key's hash, or `user:<id>`. Publishers lock this row."""

    name = models.CharField(max_length=80, unique=True)

    def __str__(self) -> str:
        return self.name


def owner_id_of(name: str) -> int:
    """Return the owner's id; 0, which nobody has, for one that never submitted anything.

    For lists, which look it up first: of a join, the planner reads the newest rows of all owners, and drops others'.
    """
    return Owner.objects.filter(name=name).values_list("id", flat=True).first() or 0
