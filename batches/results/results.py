"""A batch's results in order, whatever dialect renders them: pages of rows, their responses read as they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batches.results.responses import read_responses
from batches.results.result_rows import ResultFilter, ResultRow, iter_pages
from batches.states import ItemState
from routing.calls.failures import FailureCode
from usage.totals import item_totals

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from usage.totals import Total

# Responses that are in memory at once, unless a single one is larger.
READ_AHEAD_BYTES = 4 << 20

# Of a completed item whose response cannot be read back.
UNREADABLE_CODE = FailureCode.LOAD_RESULT_FAILED
UNREADABLE_ERROR = "load result: the stored answer cannot be read"


class Result(NamedTuple):
    """`response`: the upstream's JSON as stored; None of an item that is not completed, or where it cannot be read."""

    row: ResultRow
    response: bytes | None
    usage: Total | None

    @property
    def is_unreadable(self) -> bool:
        return self.row.state == ItemState.COMPLETED and self.response is None


def iter_results(batch_id: uuid.UUID, result_filter: ResultFilter) -> Iterator[list[Result]]:
    """Yield lists of results by idx, few enough at a time that memory stays flat however large the batch is."""
    for rows in iter_pages(batch_id, result_filter):
        usage = _usage_by_idx(batch_id, rows) if result_filter.with_usage else {}
        for group in _read_ahead_groups(rows):
            yield _with_responses(batch_id, group, usage)


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
    responses = read_responses(batch_id, [row for row in rows if row.state == ItemState.COMPLETED])
    return [Result(row, responses.get(row.idx), usage.get(row.idx)) for row in rows]


def _usage_by_idx(batch_id: uuid.UUID, rows: list[ResultRow]) -> dict[int, Total]:
    return item_totals(batch_id, first_idx=rows[0].idx, last_idx=rows[-1].idx)
