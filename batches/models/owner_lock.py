"""The lock on an owner's row, under which items are added and published for that owner."""

from __future__ import annotations

from django.db import connection

# Not the stronger FOR UPDATE: that would wait for every submission in progress, whose new batch row holds a key-share
# lock on its owner.
LOCK_OWNER = "SELECT id FROM batches_owner WHERE id = %s FOR NO KEY UPDATE"


def lock_owner(owner_id: int) -> None:
    """Hold the owner's row until the end of the transaction: nobody else publishes or adds items for it."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_OWNER, [owner_id])
