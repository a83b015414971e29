"""An item's request and response in the payload store."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from batches.payloads import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError, open_store
from relaybatch.db.outage import retry_during_outage
from routing.calls.failures import CallFailed, Failure, FailureCode

if TYPE_CHECKING:
    from batches.execution.claim import Claim

logger = logging.getLogger(__name__)

# Long enough for a hiccup of a network file system: the response was paid for.
STORE_RETRY_PAUSES_SECONDS = (0.1, 0.5, 2.0)

LOAD_INPUT_FAILED = Failure(
    FailureCode.LOAD_INPUT_FAILED, "load input: the request payload cannot be read", retryable=True
)
STORE_RESULT_FAILED = Failure(
    FailureCode.STORE_RESULT_FAILED, "store result: the response cannot be stored", retryable=True
)


def load_request(claim: Claim) -> bytes:
    """Read the item's request. Raises CallFailed (LOAD_INPUT_FAILED)."""
    try:
        return open_store().read_request(
            claim.batch_id, offset=claim.request_offset, length=claim.request_length
        )
    except (PayloadReadError, PayloadStoreUnavailable) as error:
        logger.warning("request payload unreadable", extra={**claim.log_fields, "reason": str(error)})
        raise CallFailed(LOAD_INPUT_FAILED) from error


def store_response(claim: Claim, body: bytes) -> bool:
    """Store the item's response, retrying a failed write three times; False when none of them succeeded."""
    for pause_seconds in (*STORE_RETRY_PAUSES_SECONDS, None):
        try:
            retry_during_outage(_put_response, claim, body)
        except (PayloadWriteError, PayloadStoreUnavailable) as error:
            logger.warning("response payload not stored", extra={**claim.log_fields, "reason": str(error)})
            if pause_seconds:
                time.sleep(pause_seconds)
        else:
            return True
    return False


def _put_response(claim: Claim, body: bytes) -> None:
    open_store().put_response(claim.batch_id, idx=claim.idx, claim_no=claim.claim_no, body=body)
