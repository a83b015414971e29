"""Items that were completed, without running them: 50,000 of them would take minutes.

The only place of the benchmarks that knows how the product stores an answer.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from django.conf import settings
from django.db import connection
from obstore.store import LocalStore

from batches.payloads import open_store
from batches.payloads.batch_payloads import BatchPayloads
from batches.payloads.object_store import ObjectPayloads

_FINISH = """UPDATE batches_batchitem SET state = 'completed', claim_no = 1, attempt = 1, response_length = %s,
started_at = clock_timestamp(), finished_at = clock_timestamp(), published_at = NULL
WHERE batch_id = %s AND idx < %s"""


def finish_items(batch_id: str, *, count: int, answer: bytes) -> None:
    """Complete the first `count` items with this answer. No sync for each of them: durability is not measured here."""
    _store_answers(batch_id, count=count, answer=answer)
    finish_rows(batch_id, count=count, answer_bytes=len(answer))


def finish_rows(batch_id: str, *, count: int, answer_bytes: int) -> None:
    """Complete the first `count` items without storing answers, for what does not read them."""
    with connection.cursor() as cursor:
        cursor.execute(_FINISH, [answer_bytes, batch_id, count])


def _store_answers(batch_id: str, *, count: int, answer: bytes) -> None:
    open_store()
    store = BatchPayloads(ObjectPayloads(LocalStore(Path(settings.RELAY_BATCH_PAYLOAD_DIR))))
    for idx in range(count):
        store.put_response(uuid.UUID(batch_id), idx=idx, claim_no=1, body=answer)


def answer_of(size_bytes: int) -> bytes:
    """A Chat Completions response of about this size."""
    start = b'{"id":"chatcmpl-1","object":"chat.completion","choices":[{"message":{"content":"'
    end = b'"}}]}'
    return start + b"x" * (size_bytes - len(start) - len(end)) + end
