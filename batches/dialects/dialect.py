"""The interface of a dialect: it translates between one wire format and the core's values, and does nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from batches.dialects.body_parser import SubmissionBody
    from batches.dialects.dialect_response import DialectResponse
    from batches.dialects.request_context import RequestContext
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.models.dialect_traits import DialectTraits
    from batches.submission.submission import Submission


class Dialect(Protocol):
    """`name` is stored on each batch. Parsing raises ApiError, and so does rendering what a caller may not have yet."""

    name: str
    traits: DialectTraits

    def max_body_bytes(self) -> int:
        """The limit of the decoded body."""

    def parse_submission(self, body: SubmissionBody, context: RequestContext) -> Submission: ...

    def render_created(self, batch: Batch) -> tuple[int, bytes]:
        """Status and body of the answer to a create. Both are stored, and replayed for the same Idempotency-Key."""

    def render_status(self, batch: Batch, context: RequestContext) -> DialectResponse: ...

    def render_results(self, batch: Batch, context: RequestContext) -> DialectResponse: ...

    def render_cancelled(self, batch: Batch, context: RequestContext, *, changed: bool) -> DialectResponse:
        """Render the batch as it is after the cancel. `changed`: whether this cancel is the first, before the end."""

    def render_deleted(self, batch: Batch) -> DialectResponse: ...

    def render_list(self, owned: BatchQuerySet, context: RequestContext) -> DialectResponse:
        """Render a page of the caller's batches of this dialect.

        `owned` holds deleted ones too, since these may still be cursors.
        """
