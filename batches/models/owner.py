"""Whose items share one publishing window and one quota."""

from __future__ import annotations

from django.db import connection, models

# Not the stronger FOR UPDATE: that would wait for every submission in progress, whose new batch row holds a key-share
# lock on its owner.
LOCK_OWNER = "SELECT id FROM batches_owner WHERE id = %s FOR NO KEY UPDATE"


class Owner(models.Model):
    """`name`: the submitting relay key's hash, or `user:<id>`. Publishers and submitters lock this row."""

    name = models.CharField(max_length=80, unique=True)

    def __str__(self) -> str:
        return self.name


def lock_owner(owner_id: int) -> None:
    """Lock the owner's row until the transaction ends: nobody else publishes or adds items for this owner."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_OWNER, [owner_id])
