"""Render results in Relay's form: one JSON object at any time, or a line for each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from batches.dialects.dialect_response import JSON_CONTENT_TYPE, JSON_LINES_CONTENT_TYPE, DialectResponse
from batches.dialects.relay.wire_types import RelayResult, RelayUsage
from batches.dialects.results.json_lines import coalesce_chunks, split_chunks, to_single_line
from batches.models import ITEM_STATES, ItemState
from batches.results.result_rows import ResultFilter
from batches.results.results import UNREADABLE_CODE, UNREADABLE_ERROR, iter_results

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from batches.results.results import Result
    from relaybatch.http.query_params import QueryParams
    from usage.totals import Total

FAILURE_FIELDS = ("error_code", "upstream_status", "upstream_error")
INCLUDABLE_FIELDS = (*FAILURE_FIELDS, "usage")
FORMATS = ("json", "jsonl")
MAX_LIMIT = 1_000_000

_NULL = msgspec.Raw(b"null")

_ResultParts: TypeAlias = tuple[bytes, bytes, bytes]


@dataclass(frozen=True, slots=True)
class ResultsQuery:
    result_filter: ResultFilter
    includes: frozenset[str]
    as_lines: bool

    @classmethod
    def from_parameters(cls, parameters: QueryParams) -> ResultsQuery:
        includes = frozenset(parameters.choices("include", among=INCLUDABLE_FIELDS))
        limit = parameters.number("limit", default=0, minimum=1, maximum=MAX_LIMIT)
        result_filter = ResultFilter(
            states=parameters.choices("state", among=ITEM_STATES),
            after_idx=parameters.number("after_idx", default=-1, minimum=0, maximum=2**31 - 1),
            limit=limit or None,
            with_usage="usage" in includes,
        )
        as_lines = parameters.choice("format", default="json", among=FORMATS) == "jsonl"
        return cls(result_filter, includes, as_lines)


def render_relay_results(batch_id: uuid.UUID, query: ResultsQuery) -> DialectResponse:
    pages = iter_results(batch_id, query.result_filter)
    parts = ([_render_result(result, query.includes) for result in page] for page in pages)
    if query.as_lines:
        return DialectResponse(_render_lines(parts), content_type=JSON_LINES_CONTENT_TYPE)
    return DialectResponse(_render_object(parts), content_type=JSON_CONTENT_TYPE)


def _render_object(parts: Iterator[list[_ResultParts]]) -> Iterator[bytes]:
    opening = b'{"results":['
    for part in parts:
        yield from coalesce_chunks(_join_results(part, opening=opening))
        opening = b","
    yield b"]}" if opening == b"," else opening + b"]}"


def _join_results(part: list[_ResultParts], *, opening: bytes) -> Iterator[bytes]:
    for before, response, after in part:
        yield opening + before
        yield from split_chunks(response)
        yield after
        opening = b","


def _render_lines(parts: Iterator[list[_ResultParts]]) -> Iterator[bytes]:
    for part in parts:
        yield from coalesce_chunks(line for result in part for line in _render_line(result))


def _render_line(result: _ResultParts) -> Iterator[bytes]:
    for part in result:
        yield from to_single_line(part)
    yield b"\n"


def _render_result(result: Result, includes: frozenset[str]) -> _ResultParts:
    """The result as JSON, cut around the upstream's answer: what is before it, itself, what is behind it.

    The answer may be large, and goes out as the bytes that came in: decoded and encoded it would not be the same.
    """
    if result.response is None:
        return msgspec.json.encode(_relay_result(result, includes)), b"", b""
    with_null = msgspec.json.encode(_relay_result(result, includes, response=_NULL))
    # The first null is the answer's: before it are the index and the state.
    before, _, after = with_null.partition(b"null")
    return before, result.response, after


def _relay_result(
    result: Result, includes: frozenset[str], *, response: msgspec.Raw | UnsetType = UNSET
) -> RelayResult:
    failure = _failure_fields(result)
    usage = relay_usage(result.usage) if result.usage else None
    return RelayResult(
        idx=result.row.idx,
        state=result.row.state,
        response=response,
        error=failure.get("error") or UNSET,
        **{name: failure.get(name) for name in FAILURE_FIELDS if name in includes},
        usage=usage if "usage" in includes else UNSET,
    )


def _failure_fields(result: Result) -> dict[str, Any]:
    """Why there is no answer; empty for an item that waits again after a failure, or ended while it waited."""
    row = result.row
    if result.is_unreadable:
        return {"error": UNREADABLE_ERROR, "error_code": UNREADABLE_CODE}
    if row.state != ItemState.DISCARDED and not (row.state == ItemState.CANCELLED and row.error):
        return {}
    upstream_error = row.upstream_error
    return {
        "error": row.error,
        "error_code": row.error_code or None,
        "upstream_status": row.upstream_status,
        "upstream_error": None if upstream_error is None else bytes(upstream_error).decode(errors="replace"),
    }


def relay_usage(total: Total) -> RelayUsage:
    return RelayUsage(
        tokens=total.tokens,
        cost_nanos=total.cost_nanos,
        currency=total.currency,
        unpriced=total.unpriced,
    )
