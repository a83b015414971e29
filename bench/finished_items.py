"""Items that were completed, without running them: 50,000 of them would take minutes.

The only place of the benchmarks that knows how the product stores an answer: as a row, since it is a small one.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection

from bench.figures import require

_FINISH = """UPDATE batches_batchitem SET state = 'completed', claim_no = 1, attempt = 1, response_length = %s,
started_at = clock_timestamp(), finished_at = clock_timestamp(), published_at = NULL
WHERE batch_id = %s AND idx < %s"""
# In the order of the items, which is about the order in which they would end.
_STORE_ANSWERS = """INSERT INTO batches_itemresponse (item_id, body)
SELECT id, %s::bytea FROM batches_batchitem WHERE batch_id = %s AND idx < %s ORDER BY idx"""


def finish_items(batch_id: str, *, count: int, answer: bytes) -> None:
    """Complete the first `count` items with this answer."""
    max_bytes = settings.RELAY_BATCH_INLINE_RESPONSE_BYTES
    require(len(answer) <= max_bytes, f"answers of more than {max_bytes} bytes are no rows")
    with connection.cursor() as cursor:
        cursor.execute(_STORE_ANSWERS, [answer, batch_id, count])
    finish_rows(batch_id, count=count, answer_bytes=len(answer))


def finish_rows(batch_id: str, *, count: int, answer_bytes: int) -> None:
    """Complete the first `count` items without storing answers, for what does not read them."""
    with connection.cursor() as cursor:
        cursor.execute(_FINISH, [answer_bytes, batch_id, count])


def answer_of(size_bytes: int) -> bytes:
    """A Chat Completions response of about this size."""
    start = b'{"id":"chatcmpl-1","object":"chat.completion","choices":[{"message":{"content":"'
    end = b'"}}]}'
    return start + b"x" * (size_bytes - len(start) - len(end)) + end
