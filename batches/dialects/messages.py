"""Message Batches, as Anthropic's SDKs and what is built on them speak: `/v1/messages/batches`.

https://docs.claude.com/en/api/creating-message-batches
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.conf import settings
from msgspec import json

from batches.dialects.custom_id import CustomIdRule, parse_custom_id_submission
from batches.dialects.forwarded_headers import upstream_headers
from batches.dialects.paging import DEFAULT_LIMIT, requested_page
from batches.dialects.response import DialectResponse, json_response
from batches.dialects.results.result_lines import render_result_lines
from batches.models import ItemState
from batches.models.dialect_traits import DialectTraits
from batches.models.public_ids import public_id
from relaybatch.http.errors import InvalidRequest, TooLarge
from usage.serializers import format_optional_time, format_time

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


class Messages:
    name = "messages"
    traits = DialectTraits(id_prefix="msgbatch_", has_metadata=False)

    def max_body_bytes(self) -> int:
        return settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES

    def parse_submission(self, body: SubmissionBody, context: RequestContext) -> Submission:
        """The host is looked at now, so that no poll is the first to find that it is not one of ours."""
        context.origin()
        for foreign in ("shape", "input_file_id"):
            if body.has(foreign):
                raise InvalidRequest(
                    f"`{foreign}` belongs to /v1/batches; here `requests` holds `custom_id` and `params`.",
                    code="conflicting_fields",
                    param=foreign,
                )
        return parse_custom_id_submission(
            body,
            dialect=self.name,
            shape="anthropic",
            rule=CUSTOM_ID_RULE,
            too_large=TooLarge,
            upstream_headers=upstream_headers(context.headers),
        )

    def render_created(self, batch: Batch) -> tuple[int, bytes]:
        return 200, json.encode(_message_batch(batch, results_url=None))

    def render_status(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return json_response(_current_batch(batch, context))

    def render_results(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return render_result_lines(batch, context)

    def render_cancelled(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return json_response(_current_batch(batch, context))

    def render_deleted(self, batch: Batch) -> DialectResponse:
        return json_response({"id": public_id(self.name, batch.id), "type": "message_batch_deleted"})

    def render_list(self, owned: BatchQuerySet, context: RequestContext) -> DialectResponse:
        limit = context.parameters.number("limit", default=DEFAULT_LIMIT, minimum=1, maximum=MAX_LIST_LIMIT)
        page = requested_page(owned, context.parameters, limit=limit, after="after_id", before="before_id")
        data = [_current_batch(batch, context) for batch in page.batches]
        return json_response({"data": data, "has_more": page.has_more, **page.boundary_ids})


def _current_batch(batch: Batch, context: RequestContext) -> dict[str, Any]:
    link = f"{context.origin()}/v1/messages/batches/{public_id('messages', batch.id)}/results"
    return _message_batch(batch, results_url=link if batch.ended_at else None)


def _message_batch(batch: Batch, *, results_url: str | None) -> dict[str, Any]:
    """All ten keys, always."""
    return {
        "id": public_id("messages", batch.id),
        "type": "message_batch",
        "processing_status": batch.processing_status,
        "request_counts": _request_counts(batch),
        "created_at": format_time(batch.created_at),
        "expires_at": format_optional_time(batch.expires_at),
        "ended_at": format_optional_time(batch.ended_at),
        "cancel_initiated_at": format_optional_time(batch.cancel_initiated_at),
        "archived_at": None,
        "results_url": results_url,
    }


def _request_counts(batch: Batch) -> dict[str, int]:
    """As Anthropic documents it, everything is in `processing` until the whole batch has ended."""
    final = batch.final_counts
    if final is None:
        return {"processing": batch.total_items, **dict.fromkeys(STATE_BY_COUNT, 0)}
    return {"processing": 0, **{name: final.get(state, 0) for name, state in STATE_BY_COUNT.items()}}
