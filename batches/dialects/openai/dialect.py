"""OpenAI's Batch API on `/v1/batches`: the requests come in a file, and the results are files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import json

from batches.completion.require_ended import require_ended
from batches.dialects.dialect_response import JSON_LINES_CONTENT_TYPE, DialectResponse, json_response
from batches.dialects.openai.batch import BatchDeleted, created_file_batch, file_batches
from batches.dialects.openai.batch_list import render_batch_list
from batches.dialects.openai.output_lines import render_output_lines
from batches.dialects.openai.submission import parse_file_submission
from batches.models.dialect_traits import DialectTraits
from batches.models.public_ids import public_id
from relaybatch.http.errors import Conflict

if TYPE_CHECKING:
    from batches.dialects.body_parser import SubmissionBody
    from batches.dialects.request_context import RequestContext
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.submission.submission import Submission

# The file comes by another request.
MAX_BODY_BYTES = 1_048_576


class OpenAI:
    name = "openai"
    traits = DialectTraits(id_prefix="batch_", has_metadata=True)

    def max_body_bytes(self) -> int:
        return MAX_BODY_BYTES

    def parse_submission(self, body: SubmissionBody, context: RequestContext) -> Submission:  # noqa: ARG002
        return parse_file_submission(body)

    def render_created(self, batch: Batch) -> tuple[int, bytes]:
        return 200, json.encode(created_file_batch(batch))

    def render_status(self, batch: Batch, context: RequestContext) -> DialectResponse:  # noqa: ARG002
        return json_response(file_batches([batch])[0])

    def render_results(self, batch: Batch, context: RequestContext) -> DialectResponse:  # noqa: ARG002
        require_ended(batch, then="its results can be read when it has")
        return DialectResponse(render_output_lines(batch), content_type=JSON_LINES_CONTENT_TYPE)

    def render_cancelled(self, batch: Batch, context: RequestContext, *, changed: bool) -> DialectResponse:
        """As OpenAI does it, cancelling a finished batch is a conflict; again, while it is `cancelling`, it is none."""
        is_cancelling = batch.cancel_initiated_at is not None and not batch.is_done
        if batch.ended_at and not changed and not is_cancelling:
            raise Conflict("Every request of this batch has ended, so there is nothing to cancel.")
        return self.render_status(batch, context)

    def render_deleted(self, batch: Batch) -> DialectResponse:
        return json_response(BatchDeleted(id=public_id(self.name, batch.id), object="batch", deleted=True))

    def render_list(self, owned: BatchQuerySet, context: RequestContext) -> DialectResponse:
        return render_batch_list(owned, context)
