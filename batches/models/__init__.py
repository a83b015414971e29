"""The rows that are the truth about a batch. A message is only a hint to look at them."""

from batches.models.batch import Batch, Owner
from batches.models.item import BatchItem, ItemState
from batches.models.surroundings import (
    IdempotencyKey,
    KeylessCreate,
    PayloadChunk,
    PayloadStoreMark,
    PolicyPause,
    Worker,
)

__all__ = [
    "Batch",
    "BatchItem",
    "IdempotencyKey",
    "ItemState",
    "KeylessCreate",
    "Owner",
    "PayloadChunk",
    "PayloadStoreMark",
    "PolicyPause",
    "Worker",
]
