"""The rows of a batch's results, in short queries. By SQL: docs/adr/0010-sql-in-the-item-path.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from relaybatch.db.pipeline import fetch_binary

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Sequence

# The first page is small, so that the first byte is sent early.
FIRST_PAGE_ITEMS, PAGE_ITEMS = 50, 500

# In the order of ResultRow's fields.
_PAGE = """
SELECT id, idx, custom_id, state, claim_no, response_length, error_code, error, upstream_status, upstream_error,
    upstream_request_id
FROM batches_batchitem WHERE batch_id = %(batch)s AND idx > %(after)s
    AND (%(states)s::text[] IS NULL OR state = ANY(%(states)s::text[]))
ORDER BY idx LIMIT %(limit)s
"""


class ResultRow(NamedTuple):
    item_id: uuid.UUID
    idx: int
    custom_id: str | None
    state: str
    claim_no: int
    response_length: int | None
    error_code: str
    error: str
    upstream_status: int | None
    upstream_error: bytes | None
    upstream_request_id: str


class ResultFilter(NamedTuple):
    """Which results: of these states (empty = all), after `after_idx`, at most `limit` (None = all)."""

    states: Sequence[str] = ()
    after_idx: int = -1
    limit: int | None = None
    with_usage: bool = False


def iter_pages(batch_id: uuid.UUID, result_filter: ResultFilter) -> Iterator[list[ResultRow]]:
    """Yield pages of rows by idx, none of them empty."""
    # Short queries: one long cursor would hold a snapshot as long as its slowest reader.
    after_idx, size, remaining = result_filter.after_idx, FIRST_PAGE_ITEMS, result_filter.limit
    while remaining is None or remaining > 0:
        size = size if remaining is None else min(size, remaining)
        rows = _fetch_page(batch_id, after_idx=after_idx, states=result_filter.states, limit=size)
        if rows:
            yield rows
        if len(rows) < size:
            return
        after_idx = rows[-1].idx
        remaining = None if remaining is None else remaining - size
        size = PAGE_ITEMS


def _fetch_page(batch_id: uuid.UUID, *, after_idx: int, states: Sequence[str], limit: int) -> list[ResultRow]:
    values = {"batch": batch_id, "after": after_idx, "states": list(states) or None, "limit": limit}
    return [ResultRow._make(row) for row in fetch_binary(_PAGE, values)]
