"""What a dialect is: the translation between one wire format and the core's words, with nothing else in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from batches.dialects.body_parser import SubmissionBody
    from batches.dialects.request_context import RequestContext
    from batches.dialects.response import DialectResponse
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.models.dialect_traits import DialectTraits
    from batches.submission.submission import Submission


class Dialect(Protocol):
    """`name` is stored on each batch. Reading raises ApiError; writing does not."""

    name: str
    traits: DialectTraits

    def max_body_bytes(self) -> int:
        """The decoded body's limit."""

    def parse_submission(self, body: SubmissionBody, context: RequestContext) -> Submission: ...

    def render_created(self, batch: Batch) -> tuple[int, bytes]:
        """Status and body of the answer to a create; it is stored for its Idempotency-Key."""

    def render_status(self, batch: Batch, context: RequestContext) -> DialectResponse: ...

    def render_results(self, batch: Batch, context: RequestContext) -> DialectResponse: ...

    def render_cancelled(self, batch: Batch, context: RequestContext) -> DialectResponse:
        """Of the batch as it is after the cancel."""

    def render_deleted(self, batch: Batch) -> DialectResponse: ...

    def render_list(self, owned: BatchQuerySet, context: RequestContext) -> DialectResponse:
        """A page of the caller's batches in this dialect. Deleted ones among them may still be cursors."""
