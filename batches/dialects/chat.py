"""`/v1/batches` with Chat Completions in `params`: works as Message Batches do, and looks like OpenAI's batches too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.conf import settings
from msgspec import json

from batches.dialects.bare_bodies import reject_bare_bodies
from batches.dialects.body_parser import require_item_count, split_requests
from batches.dialects.custom_id import CustomIdRule, parse_custom_id_submission
from batches.dialects.dialect_response import DialectResponse, json_response
from batches.dialects.openai.batch import BatchDeleted
from batches.dialects.openai.batch_list import render_batch_list
from batches.dialects.openai.chat_batch import chat_batches, created_chat_batch
from batches.dialects.results.result_lines import render_result_lines
from batches.models.dialect_traits import DialectTraits
from batches.models.public_ids import public_id
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from batches.dialects.body_parser import SubmissionBody
    from batches.dialects.request_context import RequestContext
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.submission.submission import Submission

# PostgreSQL's text columns hold every character but U+0000.
CUSTOM_ID_RULE = CustomIdRule(
    pattern=re.compile(r"[^\0]{1,512}"), max_characters=512, expected="1 to 512 characters without U+0000"
)


class Chat:
    name = "chat"
    traits = DialectTraits(id_prefix="batch_", has_metadata=False)

    def max_body_bytes(self) -> int:
        return settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES

    def parse_submission(self, body: SubmissionBody, context: RequestContext) -> Submission:
        # Bare bodies, of which there may be more, are recognized before chat's own limit rejects them.
        max_items = settings.RELAY_CUSTOM_ID_MAX_ITEMS
        requests = split_requests(body, max_items=max_items, max_split=settings.RELAY_BATCH_MAX_ITEMS)
        reject_bare_bodies(requests)
        require_item_count(requests, max_items=max_items)
        # A host name that is not ours is rejected now, not at the first poll, which has to give a link.
        context.origin()
        return parse_custom_id_submission(
            requests,
            dialect=self.name,
            shape="openai",
            rule=CUSTOM_ID_RULE,
            too_large=InvalidRequest,
            upstream_headers={},
        )

    def render_created(self, batch: Batch) -> tuple[int, bytes]:
        return 200, json.encode(created_chat_batch(batch))

    def render_status(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return json_response(chat_batches([batch], origin=context.origin())[0])

    def render_results(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return render_result_lines(batch, context)

    def render_cancelled(self, batch: Batch, context: RequestContext, *, changed: bool) -> DialectResponse:  # noqa: ARG002
        return self.render_status(batch, context)

    def render_deleted(self, batch: Batch) -> DialectResponse:
        return json_response(BatchDeleted(id=public_id(self.name, batch.id), object="batch", deleted=True))

    def render_list(self, owned: BatchQuerySet, context: RequestContext) -> DialectResponse:
        return render_batch_list(owned, context)
