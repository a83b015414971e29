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

# A sub-query for each row, so that each is looked up by its key: of a join, the planner may make a scan of the table.
# The list is sent in binary format (`b`), which takes a fraction of the time of a text.
_BODIES = """
SELECT idx, (SELECT body FROM batches_itemresponse WHERE item_id = i.id) FROM batches_batchitem i
WHERE batch_id = %(batch)s AND idx = ANY(%(idxs)b)
"""


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


def read_responses(batch_id: uuid.UUID, rows: Sequence[ResultRow]) -> dict[int, bytes]:
    """Read the responses of these completed items: `{idx: response}`, without those that cannot be read.

    One query; the payload store is asked only for what the table does not have.
    """
    if not rows:
        return {}
    bodies = fetch_binary(_BODIES, {"batch": batch_id, "idxs": [row.idx for row in rows]})
    found = {idx: body for idx, body in bodies if body is not None}
    if len(found) < len(rows):
        found |= _read_stored(batch_id, [row for row in rows if row.idx not in found])
    return found


def _read_stored(batch_id: uuid.UUID, rows: Sequence[ResultRow]) -> dict[int, bytes]:
    try:
        read = open_store().read_responses(batch_id, [(row.idx, row.claim_no) for row in rows])
    except PayloadStoreUnavailable:
        return {}
    return {row.idx: response for row, response in zip(rows, read, strict=True) if response is not None}
