"""The batch object of `/v1/batches` with Chat Completions: OpenAI's, with the counts of Message Batches beside its own.

https://platform.openai.com/docs/api-reference/batch/object
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from batches.dialects.openai.endpoints import ENDPOINT_BY_SHAPE
from batches.dialects.openai.submission import COMPLETION_WINDOW
from batches.dialects.openai.usage import BatchUsage, batch_usage
from batches.models import ItemState
from batches.models.batch import ProcessingStatus
from batches.models.public_ids import public_id
from batches.results.status import batch_counts
from relaybatch.http.timestamps import EpochSeconds, epoch_seconds, optional_epoch_seconds
from usage.totals import batch_totals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batches.models import Batch
    from usage.totals import Total

ENDPOINT = ENDPOINT_BY_SHAPE["openai"]

ChatStatus: TypeAlias = Literal["in_progress", "cancelling", "completed", "cancelled", "expired"]


class ChatRequestCounts(Struct, frozen=True, kw_only=True):
    """OpenAI's three counts, then Anthropic's five, whose sum is `total`."""

    total: int
    completed: int
    failed: int
    processing: int
    succeeded: int
    errored: int
    canceled: int
    expired: int


class ChatBatch(Struct, frozen=True, kw_only=True):
    """A batch of Chat Completions: all keys of OpenAI's batch object, then ours."""

    id: str
    object: Literal["batch"]
    endpoint: str
    model: str | None
    errors: dict[str, Any] | None
    input_file_id: Annotated[str, Meta(description="Empty: the requests came in the body.")]
    completion_window: str
    status: ChatStatus
    output_file_id: str | None
    error_file_id: str | None
    created_at: EpochSeconds
    expires_at: EpochSeconds | None
    in_progress_at: EpochSeconds
    finalizing_at: EpochSeconds | None
    completed_at: EpochSeconds | None
    failed_at: EpochSeconds | None
    expired_at: EpochSeconds | None
    cancelling_at: EpochSeconds | None
    cancelled_at: EpochSeconds | None
    request_counts: ChatRequestCounts
    metadata: dict[str, str]
    usage: Annotated[BatchUsage | None, Meta(description="Null until the batch has ended.")]
    processing_status: ProcessingStatus
    results_url: Annotated[str | None, Meta(description="Null until the batch has ended.")]


def created_chat_batch(batch: Batch) -> ChatBatch:
    """The object of a batch whose items were stored just now."""
    return _chat_batch(batch, counts={ItemState.AVAILABLE.value: batch.total_items})


def chat_batches(batches: Sequence[Batch], *, origin: str) -> list[ChatBatch]:
    """Two queries: for the counts of those that run, and for the usage of those that have ended."""
    counts, totals = batch_counts(batches), batch_totals(batch.id for batch in batches if batch.ended_at)
    return [
        chat_batch(batch, counts=counts[batch.id], total=totals.get(batch.id), origin=origin)
        for batch in batches
    ]


def chat_batch(batch: Batch, *, counts: Mapping[str, int], total: Total | None, origin: str) -> ChatBatch:
    """`total`: None until the batch has ended; `usage` and `results_url` are null then."""
    if total is None:
        return _chat_batch(batch, counts=counts)
    results_url = f"{origin}/v1/batches/{public_id('chat', batch.id)}/results"
    return _chat_batch(batch, counts=counts, usage=batch_usage(total), results_url=results_url)


def _chat_batch(
    batch: Batch,
    *,
    counts: Mapping[str, int],
    usage: BatchUsage | None = None,
    results_url: str | None = None,
) -> ChatBatch:
    status, ended_at = _chat_status(batch), optional_epoch_seconds(batch.ended_at)
    return ChatBatch(
        id=public_id("chat", batch.id),
        object="batch",
        endpoint=ENDPOINT,
        model=None,
        errors=None,
        input_file_id="",
        completion_window=COMPLETION_WINDOW,
        status=status,
        output_file_id=None,
        error_file_id=None,
        created_at=epoch_seconds(batch.created_at),
        expires_at=optional_epoch_seconds(batch.expires_at),
        in_progress_at=epoch_seconds(batch.created_at),
        finalizing_at=ended_at if status in ("completed", "expired") else None,
        completed_at=ended_at if status == "completed" else None,
        failed_at=None,
        expired_at=ended_at if status == "expired" else None,
        cancelling_at=optional_epoch_seconds(batch.cancel_initiated_at),
        cancelled_at=ended_at if status == "cancelled" else None,
        request_counts=_request_counts(batch, counts),
        metadata=batch.metadata,
        usage=usage,
        processing_status=batch.processing_status,
        results_url=results_url,
    )


def _chat_status(batch: Batch) -> ChatStatus:
    """`cancelled` when a cancel found the batch running, also where every item that it found was answered."""
    if batch.final_counts is None:
        return "cancelling" if batch.cancel_initiated_at else "in_progress"
    if batch.cancel_initiated_at:
        return "cancelled"
    return "expired" if batch.final_counts.get(ItemState.EXPIRED) else "completed"


def _request_counts(batch: Batch, counts: Mapping[str, int]) -> ChatRequestCounts:
    completed, failed = counts.get(ItemState.COMPLETED, 0), counts.get(ItemState.DISCARDED, 0)
    return ChatRequestCounts(
        total=batch.total_items,
        completed=completed,
        failed=failed,
        processing=counts.get(ItemState.AVAILABLE, 0) + counts.get(ItemState.RUNNING, 0),
        succeeded=completed,
        errored=failed,
        canceled=counts.get(ItemState.CANCELLED, 0),
        expired=counts.get(ItemState.EXPIRED, 0),
    )
