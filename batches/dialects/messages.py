"""`/v1/messages/batches`: Message Batches, for Anthropic's SDKs and what is built on them.

https://docs.claude.com/en/api/creating-message-batches
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from django.conf import settings
from msgspec import Meta, Struct, json

from batches.dialects.body_parser import split_requests
from batches.dialects.custom_id import CustomIdRule, parse_custom_id_submission
from batches.dialects.dialect_response import DialectResponse, json_response
from batches.dialects.forwarded_headers import upstream_headers
from batches.dialects.paging import DEFAULT_LIMIT, requested_page
from batches.dialects.results.result_lines import render_result_lines
from batches.models import ItemState
from batches.models.batch import ProcessingStatus
from batches.models.dialect_traits import DialectTraits
from batches.models.public_ids import public_id
from relaybatch.http.errors import InvalidRequest, TooLarge
from relaybatch.http.timestamps import Timestamp, format_optional_time, format_time

if TYPE_CHECKING:
    from batches.dialects.body_parser import SubmissionBody
    from batches.dialects.request_context import RequestContext
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.submission.submission import Submission

MAX_LIST_LIMIT = 1000
CUSTOM_ID_RULE = CustomIdRule(
    pattern=re.compile(r"[A-Za-z0-9_-]{1,64}"),
    max_characters=64,
    expected="1 to 64 of A-Z, a-z, 0-9, _ and -",
)
STATE_BY_COUNT = {
    "succeeded": ItemState.COMPLETED,
    "errored": ItemState.DISCARDED,
    "canceled": ItemState.CANCELLED,
    "expired": ItemState.EXPIRED,
}


class MessageRequestCounts(Struct, frozen=True, kw_only=True):
    """Their sum is the number of requests. All of them are in `processing` until the batch has ended."""

    processing: int
    succeeded: int
    errored: int
    canceled: int
    expired: int


class MessageBatch(Struct, frozen=True, kw_only=True):
    """Anthropic's message batch: all ten keys, always."""

    id: str
    type: Literal["message_batch"]
    processing_status: ProcessingStatus
    request_counts: MessageRequestCounts
    created_at: Timestamp
    expires_at: Timestamp | None
    ended_at: Timestamp | None
    cancel_initiated_at: Timestamp | None
    archived_at: Timestamp | None
    results_url: Annotated[str | None, Meta(description="Null until the batch has ended.")]


class MessageBatchList(Struct, frozen=True, kw_only=True):
    """A page of batches, newest first."""

    data: list[MessageBatch]
    has_more: bool
    first_id: str | None
    last_id: str | None


class MessageBatchDeleted(Struct, frozen=True, kw_only=True):
    id: str
    type: Literal["message_batch_deleted"]


class Messages:
    name = "messages"
    traits = DialectTraits(id_prefix="msgbatch_", has_metadata=False)

    def max_body_bytes(self) -> int:
        return settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES

    def parse_submission(self, body: SubmissionBody, context: RequestContext) -> Submission:
        # A host name that is not ours is rejected now, not at the first poll, which has to give a link.
        context.origin()
        for foreign in ("shape", "input_file_id"):
            if body.has(foreign):
                raise InvalidRequest(
                    f"`{foreign}` belongs to /v1/batches; here `requests` holds `custom_id` and `params`.",
                    code="conflicting_fields",
                    param=foreign,
                )
        return parse_custom_id_submission(
            split_requests(body, max_items=settings.RELAY_CUSTOM_ID_MAX_ITEMS),
            dialect=self.name,
            shape="anthropic",
            rule=CUSTOM_ID_RULE,
            too_large=TooLarge,
            upstream_headers=upstream_headers(context.headers),
        )

    def render_created(self, batch: Batch) -> tuple[int, bytes]:
        return 200, json.encode(message_batch(batch, origin=""))

    def render_status(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return json_response(message_batch(batch, origin=context.origin()))

    def render_results(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return render_result_lines(batch, context)

    def render_cancelled(self, batch: Batch, context: RequestContext, *, changed: bool) -> DialectResponse:  # noqa: ARG002
        return self.render_status(batch, context)

    def render_deleted(self, batch: Batch) -> DialectResponse:
        return json_response(
            MessageBatchDeleted(id=public_id(self.name, batch.id), type="message_batch_deleted")
        )

    def render_list(self, owned: BatchQuerySet, context: RequestContext) -> DialectResponse:
        parameters = context.parameters
        limit = parameters.number("limit", default=DEFAULT_LIMIT, minimum=1, maximum=MAX_LIST_LIMIT)
        page = requested_page(owned, parameters, limit=limit, after="after_id", before="before_id")
        origin = context.origin() if page.batches else ""
        return json_response(
            MessageBatchList(
                data=[message_batch(batch, origin=origin) for batch in page.batches],
                has_more=page.has_more,
                first_id=page.first_id,
                last_id=page.last_id,
            )
        )


def message_batch(batch: Batch, *, origin: str) -> MessageBatch:
    """`results_url` is null until the batch has ended."""
    results_url = f"{origin}/v1/messages/batches/{public_id('messages', batch.id)}/results"
    return MessageBatch(
        id=public_id("messages", batch.id),
        type="message_batch",
        processing_status=batch.processing_status,
        request_counts=_request_counts(batch),
        created_at=format_time(batch.created_at),
        expires_at=format_optional_time(batch.expires_at),
        ended_at=format_optional_time(batch.ended_at),
        cancel_initiated_at=format_optional_time(batch.cancel_initiated_at),
        archived_at=None,
        results_url=results_url if batch.ended_at else None,
    )


def _request_counts(batch: Batch) -> MessageRequestCounts:
    """As Anthropic documents it, every request is in `processing` until the whole batch has ended."""
    final = batch.final_counts
    return MessageRequestCounts(
        processing=batch.total_items if final is None else 0,
        **{name: (final or {}).get(state, 0) for name, state in STATE_BY_COUNT.items()},
    )
