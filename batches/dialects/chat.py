"""`/v1/batches` with Chat Completions in `params`: worked as Message Batches are, shown as OpenAI's batches are too.

OpenAI's batch object: https://platform.openai.com/docs/api-reference/batch/object
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.conf import settings
from msgspec import json

from batches.dialects.custom_id import CustomIds, custom_id_submission
from batches.dialects.paging import LIMIT_DEFAULT, asked_page
from batches.dialects.response import Answer, json_answer
from batches.dialects.results.result_lines import result_lines
from batches.models import ItemState
from batches.models.public_ids import public_id
from batches.results.status import batch_statuses
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from batches.dialects.body_parser import Wire
    from batches.dialects.request_context import Asked
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.results.status import BatchStatus
    from batches.submission.submission import Submission
    from relaybatch.http.query_params import Parameters
    from usage.totals import Total

LIST_MOST = 100
ENDPOINT = "/v1/chat/completions"
# PostgreSQL's texts hold every character but U+0000.
CUSTOM_IDS = CustomIds(
    pattern=re.compile(r"[^\0]{1,512}"), most_characters=512, form="1 to 512 characters without U+0000"
)


class Chat:
    name = "chat"

    def max_body_bytes(self) -> int:
        return settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES

    def submission(self, wire: Wire, asked: Asked) -> Submission:
        """The host is looked at now, so that no poll is the first to find that it is not one of ours."""
        asked.origin()
        return custom_id_submission(
            wire,
            dialect=self.name,
            shape="openai",
            custom_ids=CUSTOM_IDS,
            too_large=InvalidRequest,
            upstream_headers={},
        )

    def created(self, batch: Batch) -> tuple[int, bytes]:
        counts = {ItemState.AVAILABLE.value: batch.total_items}
        return 200, json.encode(_batch(batch, counts=counts, usage=None, results_url=None))

    def shown(self, batch: Batch, asked: Asked) -> Answer:
        return json_answer(shown_batch(batch_statuses([batch])[0], asked))

    def results(self, batch: Batch, asked: Asked) -> Answer:
        return result_lines(batch, asked)

    def cancelled(self, batch: Batch, asked: Asked) -> Answer:
        return self.shown(batch, asked)

    def deleted(self, batch: Batch) -> Answer:
        return json_answer({"id": public_id(self.name, batch.id), "object": "batch", "deleted": True})

    def listed(self, owned: BatchQuerySet, asked: Asked) -> Answer:
        limit = asked.parameters.number("limit", default=LIMIT_DEFAULT, minimum=1, maximum=LIST_MOST)
        page = asked_page(
            owned, asked.parameters, limit=limit, after=_word_for_after(asked.parameters), before="before_id"
        )
        data = [shown_batch(snapshot, asked) for snapshot in batch_statuses(page.batches)]
        return json_answer({"object": "list", "data": data, **page.ends, "has_more": page.has_more})


def _word_for_after(parameters: Parameters) -> str:
    """OpenAI's, or that of the twin collection."""
    given = [name for name in ("after", "after_id") if parameters.text(name) is not None]
    if len(given) == 2:
        raise InvalidRequest(
            "`after` and `after_id` are one and the same: send one.",
            code="conflicting_fields",
            param="after_id",
        )
    return given[0] if given else "after"


def shown_batch(snapshot: BatchStatus, asked: Asked) -> dict[str, Any]:
    batch = snapshot.batch
    link = f"{asked.origin()}/v1/batches/{public_id('chat', batch.id)}/results"
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
        "created_at": _epoch(batch.created_at),
        "expires_at": _epoch(batch.expires_at),
        **_times(batch),
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


def _times(batch: Batch) -> dict[str, int | None]:
    status = _status(batch)
    ended_at = _epoch(batch.ended_at)
    return {
        "in_progress_at": _epoch(batch.created_at),
        "finalizing_at": ended_at if status in ("completed", "expired") else None,
        "completed_at": ended_at if status == "completed" else None,
        "failed_at": None,
        "expired_at": ended_at if status == "expired" else None,
        "cancelling_at": _epoch(batch.cancel_initiated_at),
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
    given = tokens.get("input", 0) + read + tokens.get("cache_write", 0)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": read},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": tokens.get("reasoning", 0)},
        "total_tokens": given + output,
    }


def _epoch(at: datetime | None) -> int | None:
    return int(at.timestamp()) if at else None
