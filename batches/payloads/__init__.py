"""Requests and responses of batches: where they are stored, and under which names.

The requests of a batch are one object, and an item is an offset and a length in it; each response is an object of its
own, named by the claim that got it, so that a worker which lost its item can't overwrite anything.
"""

from batches.payloads.batch_payloads import BatchPayloads
from batches.payloads.errors import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError
from batches.payloads.opening import fallback_directory, open_store, payload_directory

__all__ = [
    "BatchPayloads",
    "PayloadReadError",
    "PayloadStoreUnavailable",
    "PayloadWriteError",
    "fallback_directory",
    "open_store",
    "payload_directory",
]
