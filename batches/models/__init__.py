"""The rows that are the truth about a batch. A message is only a hint to look at them."""

from batches.models.batch import Batch
from batches.models.file import File
from batches.models.idempotency_key import IdempotencyKey
from batches.models.item import BatchItem
from batches.models.item_response import ItemResponse
from batches.models.keyless_create import KeylessCreate
from batches.models.owner import Owner
from batches.models.payload_store import PayloadChunk, PayloadStoreMark
from batches.models.policy_pause import PolicyPause
from batches.models.worker import Worker
from batches.states import ITEM_STATES, ItemState

__all__ = [
    "ITEM_STATES",
    "Batch",
    "BatchItem",
    "File",
    "IdempotencyKey",
    "ItemResponse",
    "ItemState",
    "KeylessCreate",
    "Owner",
    "PayloadChunk",
    "PayloadStoreMark",
    "PolicyPause",
    "Worker",
]
