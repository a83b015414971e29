"""Results as JSON Lines, one for each request in the order of submission, as both `custom_id` collections give them.

https://docs.claude.com/en/api/retrieving-message-batch-results
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from batches.completion.require_ended import require_ended
from batches.dialects.response import JSON_LINES_CONTENT_TYPE, DialectResponse
from batches.dialects.results.error_types import item_error
from batches.dialects.results.json_lines import coalesce_chunks, to_single_line
from batches.models import ItemState
from batches.results.results import ResultFilter, iter_results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batches.dialects.request_context import RequestContext
    from batches.models import Batch
    from batches.results.results import Result


def render_result_lines(batch: Batch, context: RequestContext) -> DialectResponse:
    """Raises Conflict before the batch's end.

    An official SDK says its `anthropic-version`, and reads the error's type inside; others read it outside.
    """
    require_ended(batch, then="its results can be read when it has")
    nested = "anthropic-version" in context.headers
    return DialectResponse(_render_lines(batch, nested=nested), content_type=JSON_LINES_CONTENT_TYPE)


def _render_lines(batch: Batch, *, nested: bool) -> Iterator[bytes]:
    for results in iter_results(batch.id, ResultFilter()):
        yield from coalesce_chunks(
            part for result in results for part in render_result_line(result, nested=nested)
        )


def render_result_line(result: Result, *, nested: bool) -> Iterator[bytes]:
    """Its parts. The upstream's answer goes in as the bytes that it came in: read into values, it would not come out
    the same."""
    fields = {"custom_id": result.row.custom_id}
    if result.response is None:
        yield from to_single_line(msgspec.json.encode(fields | {"result": _failure(result, nested=nested)}))
        yield b"\n"
        return
    yield from to_single_line(msgspec.json.encode(fields)[:-1])
    yield b',"result":{"type":"succeeded","message":'
    yield from to_single_line(result.response)
    yield b"}}\n"


def _failure(result: Result, *, nested: bool) -> dict[str, Any]:
    match result.row.state:
        case ItemState.CANCELLED:
            return {"type": "canceled"}
        case ItemState.EXPIRED:
            return {"type": "expired"}
        case _:
            return {"type": "errored", "error": _error(result, nested=nested)}


def _error(result: Result, *, nested: bool) -> dict[str, Any]:
    """One object for both kinds of reader. The item's id is in our logs, and was its upstream's Idempotency-Key."""
    error = item_error(result)
    return {
        "type": "error" if nested else error.type,
        "message": error.message,
        "error": {"type": error.type, "message": error.message},
        "request_id": error.request_id or str(result.row.item_id),
    }
