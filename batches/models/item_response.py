"""The responses that live in the database: those of at most RELAY_BATCH_INLINE_RESPONSE_BYTES."""

from __future__ import annotations

from django.db import models


class ItemResponse(models.Model):
    """A completed item's response, written by the transaction that completes the item.

    So there is one at most for an item, and no claim number: a worker that lost its item writes none. Larger responses
    are objects of the payload store. There is no foreign key: rows are written and removed with their item's.
    """

    item_id = models.UUIDField(primary_key=True, editable=False)
    body = models.BinaryField()

    def __str__(self) -> str:
        return str(self.item_id)
