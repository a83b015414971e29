"""OpenAI's batch object.

https://platform.openai.com/docs/api-reference/batch/object
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, convert

from batches.dialects.openai.endpoints import ENDPOINT_BY_SHAPE
from batches.dialects.openai.submission import COMPLETION_WINDOW
from batches.dialects.openai.usage import BatchUsage, batch_usage
from batches.models import ItemState
from batches.models.file import file_public_id
from batches.models.public_ids import public_id
from batches.results.status import batch_counts
from relaybatch.http.timestamps import EpochSeconds, epoch_seconds, optional_epoch_seconds
from usage.totals import batch_totals

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping, Sequence

    from batches.models import Batch
    from usage.totals import Total

BatchStatus: TypeAlias = Literal[
    "validating",
    "failed",
    "in_progress",
    "finalizing",
    "completed",
    "expired",
    "cancelling",
    "cancelled",
]


class BatchError(Struct, frozen=True, kw_only=True):
    """What is wrong with the input file. `line`: counted from 1; null where it is not about one line."""

    code: str
    line: int | None
    message: str
    param: str | None


class BatchErrors(Struct, frozen=True, kw_only=True):
    object: Literal["list"]
    data: list[BatchError]


class RequestCounts(Struct, frozen=True, kw_only=True):
    """Cancelled and expired requests are in neither count."""

    total: int
    completed: int
    failed: int


class FileBatch(Struct, frozen=True, kw_only=True):
    """A batch whose requests come in a file."""

    id: str
    object: Literal["batch"]
    endpoint: str
    model: Annotated[str | None, Meta(description="Null: each request names its own.")]
    errors: BatchErrors | None
    input_file_id: str
    completion_window: str
    status: BatchStatus
    output_file_id: Annotated[
        str | None, Meta(description="Null while there is none, and if nothing succeeded.")
    ]
    error_file_id: Annotated[str | None, Meta(description="Null while there is none, and if nothing failed.")]
    created_at: EpochSeconds
    in_progress_at: EpochSeconds | None
    expires_at: EpochSeconds | None
    finalizing_at: EpochSeconds | None
    completed_at: EpochSeconds | None
    failed_at: EpochSeconds | None
    expired_at: EpochSeconds | None
    cancelling_at: EpochSeconds | None
    cancelled_at: EpochSeconds | None
    request_counts: RequestCounts
    metadata: dict[str, str]
    usage: Annotated[BatchUsage | None, Meta(description="Null until the batch is done.")]


class BatchDeleted(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["batch"]
    deleted: bool


def created_file_batch(batch: Batch) -> FileBatch:
    """The object of a batch whose row was stored just now."""
    return _file_batch(batch, counts={}, total=None)


def file_batches(batches: Sequence[Batch]) -> list[FileBatch]:
    """Two queries: for the counts of those that run, and for the usage of those that are done."""
    counts = batch_counts(batches)
    totals = batch_totals(batch.id for batch in batches if batch.finalized_at)
    return [_file_batch(batch, counts=counts[batch.id], total=totals.get(batch.id)) for batch in batches]


def _file_batch(batch: Batch, *, counts: Mapping[str, int], total: Total | None) -> FileBatch:
    status = batch_status(batch)
    done_at = optional_epoch_seconds(batch.finalized_at)
    return FileBatch(
        id=public_id("openai", batch.id),
        object="batch",
        endpoint=ENDPOINT_BY_SHAPE[batch.shape],
        model=None,
        errors=_errors(batch),
        input_file_id=_optional_file_id(batch.input_file_id) or "",
        completion_window=COMPLETION_WINDOW,
        status=status,
        output_file_id=_optional_file_id(batch.output_file_id if batch.finalized_at else None),
        error_file_id=_optional_file_id(batch.error_file_id if batch.finalized_at else None),
        created_at=epoch_seconds(batch.created_at),
        in_progress_at=optional_epoch_seconds(batch.in_progress_at),
        expires_at=optional_epoch_seconds(batch.expires_at),
        finalizing_at=optional_epoch_seconds(batch.ended_at) if batch.in_progress_at else None,
        completed_at=done_at if status == "completed" else None,
        failed_at=done_at if status == "failed" else None,
        expired_at=done_at if status == "expired" else None,
        cancelling_at=optional_epoch_seconds(batch.cancel_initiated_at),
        cancelled_at=done_at if status == "cancelled" else None,
        request_counts=RequestCounts(
            total=batch.total_items,
            completed=counts.get(ItemState.COMPLETED, 0),
            failed=counts.get(ItemState.DISCARDED, 0),
        ),
        metadata=batch.metadata,
        usage=batch_usage(total) if total and batch.in_progress_at else None,
    )


def batch_status(batch: Batch) -> BatchStatus:
    """A cancelled batch is `cancelling` until its files are written, an expired one `finalizing`, as any other."""
    if batch.finalized_at is None:
        return _open_status(batch)
    if batch.file_errors is not None:
        return "failed"
    if batch.cancel_initiated_at:
        return "cancelled"
    never_started = batch.in_progress_at is None
    return "expired" if never_started or (batch.final_counts or {}).get(ItemState.EXPIRED) else "completed"


def _open_status(batch: Batch) -> BatchStatus:
    if batch.cancel_initiated_at:
        return "cancelling"
    if batch.ended_at:
        return "finalizing"
    return "in_progress" if batch.in_progress_at else "validating"


def _errors(batch: Batch) -> BatchErrors | None:
    if batch.file_errors is None:
        return None
    return BatchErrors(object="list", data=convert(batch.file_errors, list[BatchError]))


def _optional_file_id(file_id: uuid.UUID | None) -> str | None:
    return file_public_id(file_id) if file_id else None
