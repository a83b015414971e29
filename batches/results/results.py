"""A batch's results in order, whatever dialect renders them: pages of rows, their responses read as they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batches.models import BatchItem, ItemState
from batches.payloads import PayloadStoreUnavailable, open_store
from routing.calls.failures import FailureCode
from usage.totals import item_totals

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Sequence

    from usage.totals import Total

# The first page is small, so that the first byte is sent early.
FIRST_PAGE_ITEMS, PAGE_ITEMS = 50, 500
# Responses that are in memory at once, unless a single one is larger.
READ_AHEAD_BYTES = 4 << 20

# Of a completed item whose response cannot be read back.
UNREADABLE_CODE = FailureCode.LOAD_RESULT_FAILED
UNREADABLE_ERROR = "load result: the stored answer cannot be read"

_COLUMNS = (
    *("id", "idx", "custom_id", "state", "claim_no", "response_length"),
    *("error_code", "error", "upstream_status", "upstream_error"),
)


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
    upstream_error: memoryview | bytes | None


class Result(NamedTuple):
    """`response`: the upstream's JSON as stored; None of an item that is not completed, or where it cannot be read."""

    row: ResultRow
    response: bytes | None
    usage: Total | None

    @property
    def is_unreadable(self) -> bool:
        return self.row.state == ItemState.COMPLETED and self.response is None


class ResultFilter(NamedTuple):
    """Which results: of these states (empty = all), after `after_idx`, at most `limit` (None = all)."""

    states: Sequence[str] = ()
    after_idx: int = -1
    limit: int | None = None
    with_usage: bool = False


def iter_results(batch_id: uuid.UUID, result_filter: ResultFilter) -> Iterator[list[Result]]:
    """Yield lists of results by idx, few enough at a time that memory stays flat however large the batch is."""
    for rows in _pages(batch_id, result_filter):
        usage = _usage_by_idx(batch_id, rows) if result_filter.with_usage else {}
        for group in _read_ahead_groups(rows):
            yield _with_responses(batch_id, group, usage)


def _pages(batch_id: uuid.UUID, result_filter: ResultFilter) -> Iterator[list[ResultRow]]:
    # Short queries: one long cursor would hold a snapshot as long as its slowest reader.
    after_idx, size, remaining = result_filter.after_idx, FIRST_PAGE_ITEMS, result_filter.limit
    while remaining is None or remaining > 0:
        size = size if remaining is None else min(size, remaining)
        found = BatchItem.objects.page(batch_id, after_idx=after_idx, states=result_filter.states)[:size]
        rows = [ResultRow(*row) for row in found.values_list(*_COLUMNS)]
        if rows:
            yield rows
        if len(rows) < size:
            return
        after_idx = rows[-1].idx
        remaining = None if remaining is None else remaining - size
        size = PAGE_ITEMS


def _read_ahead_groups(rows: list[ResultRow]) -> Iterator[list[ResultRow]]:
    group: list[ResultRow] = []
    group_bytes = 0
    for row in rows:
        length = row.response_length or 0
        if group and group_bytes + length > READ_AHEAD_BYTES:
            yield group
            group, group_bytes = [], 0
        group.append(row)
        group_bytes += length
    yield group


def _with_responses(batch_id: uuid.UUID, rows: list[ResultRow], usage: dict[int, Total]) -> list[Result]:
    completed = [row for row in rows if row.state == ItemState.COMPLETED]
    refs = [(row.idx, row.claim_no) for row in completed]
    read = _read_responses(batch_id, refs) if refs else []
    found = {row.idx: response for row, response in zip(completed, read, strict=True)}
    return [Result(row, found.get(row.idx), usage.get(row.idx)) for row in rows]


def _read_responses(batch_id: uuid.UUID, refs: list[tuple[int, int]]) -> list[bytes | None]:
    try:
        return open_store().read_responses(batch_id, refs)
    except PayloadStoreUnavailable:
        return [None] * len(refs)


def _usage_by_idx(batch_id: uuid.UUID, rows: list[ResultRow]) -> dict[int, Total]:
    return item_totals(batch_id, first_idx=rows[0].idx, last_idx=rows[-1].idx)
