"""Relay's results: one JSON object at any time, or a line for each item."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from batches.dialects.response import JSON, JSON_LINES, Answer
from batches.dialects.results.json_lines import gathered, one_line, pieces
from batches.models import ItemState
from batches.results.results import UNREADABLE_CODE, UNREADABLE_ERROR, ResultFilter, iter_results

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from batches.results.results import Result
    from relaybatch.http.query_params import Parameters
    from usage.totals import Total

FAILURE = ("error_code", "upstream_status", "upstream_error")
INCLUDES = (*FAILURE, "usage")
FORMATS = ("json", "jsonl")
LIMIT_MOST = 1_000_000

_Parts: TypeAlias = tuple[bytes, bytes, bytes]


@dataclass(frozen=True, slots=True)
class ResultsQuery:
    selection: ResultFilter
    includes: frozenset[str]
    as_lines: bool

    @classmethod
    def read(cls, parameters: Parameters) -> ResultsQuery:
        includes = frozenset(parameters.choices("include", among=INCLUDES))
        limit = parameters.number("limit", default=0, minimum=1, maximum=LIMIT_MOST)
        selection = ResultFilter(
            states=parameters.choices("state", among=ItemState.values),
            after_idx=parameters.number("after_idx", default=-1, minimum=0, maximum=2**31 - 1),
            limit=limit or None,
            with_usage="usage" in includes,
        )
        as_lines = parameters.choice("format", default="json", among=FORMATS) == "jsonl"
        return cls(selection, includes, as_lines)


def relay_results(batch_id: uuid.UUID, query: ResultsQuery) -> Answer:
    pages = iter_results(batch_id, query.selection)
    parts = ([_result(result, query.includes) for result in page] for page in pages)
    if query.as_lines:
        return Answer(_lines(parts), content_type=JSON_LINES)
    return Answer(_object(parts), content_type=JSON)


def _object(parts: Iterator[list[_Parts]]) -> Iterator[bytes]:
    opening = b'{"results":['
    for part in parts:
        yield from gathered(_joined(part, opening=opening))
        opening = b","
    yield b"]}" if opening == b"," else opening + b"]}"


def _joined(part: list[_Parts], *, opening: bytes) -> Iterator[bytes]:
    for before, response, after in part:
        yield opening + before
        yield from pieces(response)
        yield after
        opening = b","


def _lines(parts: Iterator[list[_Parts]]) -> Iterator[bytes]:
    for part in parts:
        yield from gathered(line for result in part for line in _line(result))


def _line(result: _Parts) -> Iterator[bytes]:
    for part in result:
        yield from one_line(part)
    yield b"\n"


def _result(result: Result, includes: frozenset[str]) -> _Parts:
    """The upstream's answer goes in as the bytes that it came in: read into values, it would not come out the same.

    It stands apart, since it may be large: before it, itself, behind it.
    """
    fields: dict[str, Any] = {"idx": result.row.idx, "state": result.row.state}
    others = _failure(result, includes)
    if "usage" in includes:
        others["usage"] = shown_usage(result.usage) if result.usage else None
    if result.response is None:
        return msgspec.json.encode(fields | others), b"", b""
    after = b"," + msgspec.json.encode(others)[1:] if others else b"}"
    return msgspec.json.encode(fields)[:-1] + b',"response":', result.response, after


def _failure(result: Result, includes: frozenset[str]) -> dict[str, Any]:
    """Why there is no answer. An item that waits again after a failure, or ended while it waited, has no such."""
    row = result.row
    found: dict[str, Any] = {}
    if result.is_unreadable:
        found = {"error": UNREADABLE_ERROR, "error_code": UNREADABLE_CODE}
    elif row.state == ItemState.DISCARDED or (row.state == ItemState.CANCELLED and row.error):
        said = None if row.upstream_error is None else bytes(row.upstream_error).decode(errors="replace")
        found = {"error": row.error, "error_code": row.error_code or None}
        found |= {"upstream_status": row.upstream_status, "upstream_error": said}
    shown = {"error": found["error"]} if found.get("error") else {}
    return shown | {name: found.get(name) for name in FAILURE if name in includes}


def shown_usage(total: Total) -> dict[str, Any]:
    shown = asdict(total)
    return {name: shown[name] for name in ("tokens", "cost_nanos", "currency", "unpriced")}
