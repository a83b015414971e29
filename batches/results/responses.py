"""Where a completed item's response is read from: the table of small responses, else the payload store.

Which of the two holds it is not recorded: RELAY_BATCH_INLINE_RESPONSE_BYTES may have been another when it was stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models.functions import Substr

from batches.models import ItemResponse
from batches.payloads import PayloadReadError, PayloadStoreUnavailable, open_store
from relaybatch.db.pipeline import fetch_binary

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from batches.models import BatchItem
    from batches.results.result_rows import ResultRow

_BODIES = "SELECT item_id, body FROM batches_itemresponse WHERE item_id = ANY(%(ids)s)"


def read_response(item: BatchItem) -> bytes:
    """Raises PayloadReadError and PayloadStoreUnavailable."""
    inline = ItemResponse.objects.filter(item_id=item.id).values_list("body", flat=True).first()
    if inline is not None:
        return bytes(inline)
    return open_store().read_response(item.batch_id, idx=item.idx, claim_no=item.claim_no)


def read_response_start(item: BatchItem, *, length: int) -> bytes:
    """Return the first `length` bytes. Raises PayloadReadError (also for fewer) and PayloadStoreUnavailable."""
    rows = ItemResponse.objects.filter(item_id=item.id).values_list(Substr("body", 1, length), flat=True)
    inline = rows.first()
    if inline is None:
        return open_store().read_response_start(
            item.batch_id, idx=item.idx, claim_no=item.claim_no, length=length
        )
    if len(inline) != length:
        raise PayloadReadError(f"the response of {item} is too short")
    return bytes(inline)


def read_responses(batch_id: uuid.UUID, rows: Sequence[ResultRow]) -> dict[uuid.UUID, bytes]:
    """Read the responses of these completed items: `{item id: response}`, without those that cannot be read.

    One query; the payload store is asked only for what the table does not have.
    """
    if not rows:
        return {}
    found = dict(fetch_binary(_BODIES, {"ids": [row.item_id for row in rows]}))
    if len(found) < len(rows):
        found |= _read_stored(batch_id, [row for row in rows if row.item_id not in found])
    return found


def _read_stored(batch_id: uuid.UUID, rows: Sequence[ResultRow]) -> dict[uuid.UUID, bytes]:
    try:
        read = open_store().read_responses(batch_id, [(row.idx, row.claim_no) for row in rows])
    except PayloadStoreUnavailable:
        return {}
    return {row.item_id: response for row, response in zip(rows, read, strict=True) if response is not None}
