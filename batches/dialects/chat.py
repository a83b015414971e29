"""`/v1/batches` with Chat Completions in `params`: worked as Message Batches are, shown as OpenAI's batches are too.

OpenAI's batch object: https://platform.openai.com/docs/api-reference/batch/object
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.conf import settings
from msgspec import json

from batches.dialects.custom_id import CustomIdRule, parse_custom_id_submission
from batches.dialects.paging import DEFAULT_LIMIT, requested_page
from batches.dialects.response import DialectResponse, json_response
from batches.dialects.results.result_lines import render_result_lines
from batches.models import ItemState
from batches.models.dialect_traits import DialectTraits
from batches.models.public_ids import public_id
from batches.results.status import batch_statuses
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from batches.dialects.body_parser import SubmissionBody
    from batches.dialects.request_context import RequestContext
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.results.status import BatchStatus
    from batches.submission.submission import Submission
    from relaybatch.http.query_params import QueryParams
    from usage.totals import Total

MAX_LIST_LIMIT = 100
ENDPOINT = "/v1/chat/completions"
# PostgreSQL's texts hold every character but U+0000.
CUSTOM_ID_RULE = CustomIdRule(
    pattern=re.compile(r"[^\0]{1,512}"), max_characters=512, expected="1 to 512 characters without U+0000"
)


class Chat:
    name = "chat"
    traits = DialectTraits(id_prefix="batch_", has_metadata=False)

    def max_body_bytes(self) -> int:
        return settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES

    def parse_submission(self, body: SubmissionBody, context: RequestContext) -> Submission:
        """The host is looked at now, so that no poll is the first to find that it is not one of ours."""
        context.origin()
        return parse_custom_id_submission(
            body,
            dialect=self.name,
            shape="openai",
            rule=CUSTOM_ID_RULE,
            too_large=InvalidRequest,
            upstream_headers={},
        )

    def render_created(self, batch: Batch) -> tuple[int, bytes]:
        counts = {ItemState.AVAILABLE.value: batch.total_items}
        return 200, json.encode(_batch(batch, counts=counts, usage=None, results_url=None))

    def render_status(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return json_response(batch_object(batch_statuses([batch])[0], context))

    def render_results(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return render_result_lines(batch, context)

    def render_cancelled(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return self.render_status(batch, context)

    def render_deleted(self, batch: Batch) -> DialectResponse:
        return json_response({"id": public_id(self.name, batch.id), "object": "batch", "deleted": True})

    def render_list(self, owned: BatchQuerySet, context: RequestContext) -> DialectResponse:
        limit = context.parameters.number("limit", default=DEFAULT_LIMIT, minimum=1, maximum=MAX_LIST_LIMIT)
        page = requested_page(
            owned,
            context.parameters,
            limit=limit,
            after=_after_parameter(context.parameters),
            before="before_id",
        )
        data = [batch_object(snapshot, context) for snapshot in batch_statuses(page.batches)]
        return json_response({"object": "list", "data": data, **page.boundary_ids, "has_more": page.has_more})


def _after_parameter(parameters: QueryParams) -> str:
    """OpenAI's, or that of the twin collection."""
    given = [name for name in ("after", "after_id") if parameters.text(name) is not None]
    if len(given) == 2:
        raise InvalidRequest(
            "`after` and `after_id` are one and the same: send one.",
            code="conflicting_fields",
            param="after_id",
        )
    return given[0] if given else "after"


def batch_object(snapshot: BatchStatus, context: RequestContext) -> dict[str, Any]:
    batch = snapshot.batch
    link = f"{context.origin()}/v1/batches/{public_id('chat', batch.id)}/results"
    if not batch.ended_at:
        return _batch(batch, counts=snapshot.counts, usage=None, results_url=None)
    return _batch(batch, counts=snapshot.counts, usage=_usage(snapshot.usage), results_url=link)


def _batch(
    batch: Batch, *, counts: Mapping[str, int], usage: dict[str, Any] | None, results_url: str | None
) -> dict[str, Any]:
    """All keys of OpenAI's batch, then ours. `usage` is known as a whole only at the end."""
    return {
        "id": public_id("chat", batch.id),
        "object": "batch",
        "endpoint": ENDPOINT,
        "model": None,
        "errors": None,
        "input_file_id": "",
        "completion_window": "24h",
        "status": _status(batch),
        "output_file_id": None,
        "error_file_id": None,
        "created_at": _epoch_seconds(batch.created_at),
        "expires_at": _epoch_seconds(batch.expires_at),
        **_status_times(batch),
        "request_counts": _request_counts(batch, counts),
        "metadata": batch.metadata,
        "usage": usage,
        "processing_status": batch.processing_status,
        "results_url": results_url,
    }


def _status(batch: Batch) -> str:
    """`cancelled` when a cancel found the batch running, also where every item it found came to its answer."""
    if batch.final_counts is None:
        return "cancelling" if batch.cancel_initiated_at else "in_progress"
    if batch.cancel_initiated_at:
        return "cancelled"
    return "expired" if batch.final_counts.get(ItemState.EXPIRED) else "completed"


def _status_times(batch: Batch) -> dict[str, int | None]:
    status = _status(batch)
    ended_at = _epoch_seconds(batch.ended_at)
    return {
        "in_progress_at": _epoch_seconds(batch.created_at),
        "finalizing_at": ended_at if status in ("completed", "expired") else None,
        "completed_at": ended_at if status == "completed" else None,
        "failed_at": None,
        "expired_at": ended_at if status == "expired" else None,
        "cancelling_at": _epoch_seconds(batch.cancel_initiated_at),
        "cancelled_at": ended_at if status == "cancelled" else None,
    }


def _request_counts(batch: Batch, counts: Mapping[str, int]) -> dict[str, int]:
    """OpenAI's three, then Anthropic's five, of which the sum is the first."""
    completed, failed = counts.get(ItemState.COMPLETED, 0), counts.get(ItemState.DISCARDED, 0)
    return {
        "total": batch.total_items,
        "completed": completed,
        "failed": failed,
        "processing": counts.get(ItemState.AVAILABLE, 0) + counts.get(ItemState.RUNNING, 0),
        "succeeded": completed,
        "errored": failed,
        "canceled": counts.get(ItemState.CANCELLED, 0),
        "expired": counts.get(ItemState.EXPIRED, 0),
    }


def _usage(total: Total) -> dict[str, Any]:
    """Our meters never overlap; OpenAI's input includes what came from the cache."""
    tokens = total.tokens
    read, output = tokens.get("cache_read", 0), tokens.get("output", 0)
    prompt = tokens.get("input", 0) + read + tokens.get("cache_write", 0)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": read},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": tokens.get("reasoning", 0)},
        "total_tokens": prompt + output,
    }


def _epoch_seconds(at: datetime | None) -> int | None:
    return int(at.timestamp()) if at else None
