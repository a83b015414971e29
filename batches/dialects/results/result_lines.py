"""Render results as JSON Lines: a line for each request, in the order of submission, for both `custom_id` dialects.

https://docs.claude.com/en/api/retrieving-message-batch-results
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from batches.completion.require_ended import require_ended
from batches.dialects.dialect_response import JSON_LINES_CONTENT_TYPE, DialectResponse
from batches.dialects.results.error_types import item_error
from batches.dialects.results.json_lines import coalesce_chunks, to_single_line
from batches.models import ItemState
from batches.results.result_rows import ResultFilter
from batches.results.results import iter_results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batches.dialects.request_context import RequestContext
    from batches.models import Batch
    from batches.results.results import Result


class Succeeded(Struct, frozen=True, tag="succeeded", tag_field="type"):
    message: Annotated[Raw, Meta(description="The upstream's JSON, token for token.")]


class ResultErrorDetail(Struct, frozen=True, kw_only=True):
    type: str
    message: str


class ResultError(Struct, frozen=True, kw_only=True):
    """`type` is `error` for a reader that sent `anthropic-version`, else the same as in `error`."""

    type: str
    message: str
    error: ResultErrorDetail
    request_id: str


class Errored(Struct, frozen=True, tag="errored", tag_field="type"):
    error: ResultError


class Canceled(Struct, frozen=True, tag="canceled", tag_field="type"):
    """Stopped by a cancel, waiting or running."""


class Expired(Struct, frozen=True, tag="expired", tag_field="type"):
    """The batch's time was over before it started."""


class ResultLine(Struct, frozen=True, kw_only=True):
    """One line of a batch's results."""

    custom_id: str | None
    result: Succeeded | Errored | Canceled | Expired


# The upstream's response is written in the place of the null.
_WITH_NULL = Succeeded(message=Raw(b"null"))


def render_result_lines(batch: Batch, context: RequestContext) -> DialectResponse:
    """Stream the lines. Raises Conflict before the batch has ended."""
    require_ended(batch, then="its results can be read when it has")
    # Official SDKs send `anthropic-version` and read the error's type from the inner object, others from the outer.
    nested = "anthropic-version" in context.headers
    return DialectResponse(_render_lines(batch, nested=nested), content_type=JSON_LINES_CONTENT_TYPE)


def _render_lines(batch: Batch, *, nested: bool) -> Iterator[bytes]:
    for results in iter_results(batch.id, ResultFilter()):
        yield from coalesce_chunks(
            part for result in results for part in render_result_line(result, nested=nested)
        )


def render_result_line(result: Result, *, nested: bool) -> Iterator[bytes]:
    """Yield the parts of one line. The upstream's response goes out as the bytes that came in: decoded and encoded, it
    would not be the same.
    """
    custom_id = result.row.custom_id
    if result.response is None:
        line = ResultLine(custom_id=custom_id, result=_failure(result, nested=nested))
        yield from to_single_line(msgspec.json.encode(line))
        yield b"\n"
        return
    with_null = msgspec.json.encode(ResultLine(custom_id=custom_id, result=_WITH_NULL))
    yield from to_single_line(with_null.removesuffix(b"null}}"))
    yield from to_single_line(result.response)
    yield b"}}\n"


def _failure(result: Result, *, nested: bool) -> Errored | Canceled | Expired:
    match result.row.state:
        case ItemState.CANCELLED:
            return Canceled()
        case ItemState.EXPIRED:
            return Expired()
        case _:
            return Errored(error=_error(result, nested=nested))


def _error(result: Result, *, nested: bool) -> ResultError:
    """One object for both kinds of reader. Without a request id of the upstream's it has the item's id, which is in our
    logs and was sent upstream as Idempotency-Key.
    """
    error = item_error(result)
    return ResultError(
        type="error" if nested else error.type,
        message=error.message,
        error=ResultErrorDetail(type=error.type, message=error.message),
        request_id=error.request_id or str(result.row.item_id),
    )
