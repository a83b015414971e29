"""The lines of a batch's output file and of its error file.

https://platform.openai.com/docs/api-reference/batch/request-output
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from batches.dialects.openai.line_error import error_body, error_status
from batches.dialects.results.error_types import item_error
from batches.dialects.results.json_lines import coalesce_chunks, to_single_line
from batches.results.result_rows import ResultFilter
from batches.results.results import iter_results
from batches.states import ItemState
from routing.calls.failures import FailureCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batches.models import Batch
    from batches.results.results import Result

SUCCESS_STATUS = 200


class LineErrorCode(StrEnum):
    """Every `error.code` of a line without a response."""

    BATCH_CANCELLED = "batch_cancelled"
    BATCH_EXPIRED = "batch_expired"
    REQUEST_TIMEOUT = "request_timeout"


class LineResponse(Struct, frozen=True, kw_only=True):
    """`request_id`: the upstream's name for the call, else the item's id."""

    status_code: int
    request_id: str
    body: Annotated[Raw, Meta(description="The upstream's JSON, token for token.")]


class LineError(Struct, frozen=True, kw_only=True):
    """Why there was no response at all."""

    code: LineErrorCode
    message: str


class OutputLine(Struct, frozen=True, kw_only=True):
    """One request's result. Either `response` or `error` is null."""

    id: str
    custom_id: str | None
    response: LineResponse | None
    error: LineError | None


_CANCELLED = LineError(
    code=LineErrorCode.BATCH_CANCELLED, message="The batch was cancelled before this request ended."
)
_EXPIRED = LineError(
    code=LineErrorCode.BATCH_EXPIRED, message="The batch expired before this request was started."
)
_NULL = Raw(b"null")
_END_OF_BODY = b'null},"error":null}'


def is_success(result: Result) -> bool:
    """Whether the line belongs into the output file."""
    return result.response is not None


def render_output_lines(batch: Batch) -> Iterator[bytes]:
    """Yield the lines of both files, in the order of the requests, in chunks."""
    for results in iter_results(batch.id, ResultFilter()):
        yield from coalesce_chunks(part for result in results for part in render_output_line(result))


def render_output_line(result: Result) -> Iterator[bytes]:
    """Yield the parts of one line. A body goes out as the bytes that came in: decoded and encoded, it would not be the
    same.
    """
    failed_without_response = _line_error(result)
    if failed_without_response:
        yield from to_single_line(msgspec.json.encode(_line(result, error=failed_without_response)))
        yield b"\n"
        return
    response, body = _response(result)
    # The body is written in the place of the null.
    with_null = msgspec.json.encode(_line(result, response=response))
    yield from to_single_line(with_null.removesuffix(_END_OF_BODY))
    yield from to_single_line(body)
    yield b'},"error":null}\n'


def _response(result: Result) -> tuple[LineResponse, bytes]:
    """The response without its body, and the body: the upstream's, or one that stands for the failure."""
    if result.response is not None:
        status, request_id, body = SUCCESS_STATUS, result.row.upstream_request_id, result.response
    else:
        failure = item_error(result)
        status, request_id = error_status(result), failure.request_id or ""
        body = error_body(result, failure)
    request_id = request_id or str(result.row.item_id)
    return LineResponse(status_code=status, request_id=request_id, body=_NULL), body


def _line(
    result: Result, *, response: LineResponse | None = None, error: LineError | None = None
) -> OutputLine:
    return OutputLine(
        id=f"batch_req_{result.row.item_id.hex}",
        custom_id=result.row.custom_id,
        response=response,
        error=error,
    )


def _line_error(result: Result) -> LineError | None:
    """The error of a request that got no response; None if there is one to show, or one that stands for it."""
    match result.row.state:
        case ItemState.CANCELLED:
            return _CANCELLED
        case ItemState.EXPIRED:
            return _EXPIRED
    if result.row.error_code == FailureCode.TIMEOUT:
        return LineError(code=LineErrorCode.REQUEST_TIMEOUT, message=result.row.error)
    return None
