"""What a dialect is: the translation between one wire format and the core's words, with nothing else in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from batches.dialects.body_parser import Wire
    from batches.dialects.request_context import Asked
    from batches.dialects.response import Answer
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.submission.submission import Submission


class Dialect(Protocol):
    """`name` is stored on each batch. Reading raises ApiError; writing does not."""

    name: str

    def max_body_bytes(self) -> int:
        """The decoded body's limit."""

    def submission(self, wire: Wire, asked: Asked) -> Submission: ...

    def created(self, batch: Batch) -> tuple[int, bytes]:
        """Status and body of the answer to a create; it is stored for its Idempotency-Key."""

    def shown(self, batch: Batch, asked: Asked) -> Answer: ...

    def results(self, batch: Batch, asked: Asked) -> Answer: ...

    def cancelled(self, batch: Batch, asked: Asked) -> Answer:
        """Of the batch as it is after the cancel."""

    def deleted(self, batch: Batch) -> Answer: ...

    def listed(self, owned: BatchQuerySet, asked: Asked) -> Answer:
        """A page of the caller's batches in this dialect. Deleted ones among them may still be cursors."""
