"""Batches of Chat Completions by `custom_id`, with OpenAI's batch object."""

from __future__ import annotations

from typing import Any

from batches.openapi.forms import (
    INTEGER,
    PROCESSING_STATUS,
    STRING,
    custom_id_submission,
    list_of,
    maybe,
    one_of,
    whole,
)

_EPOCH: dict[str, Any] = {"type": "integer", "description": "Seconds since 1970."}
_USAGE = whole(
    {
        "input_tokens": INTEGER,
        "input_tokens_details": whole({"cached_tokens": INTEGER}),
        "output_tokens": INTEGER,
        "output_tokens_details": whole({"reasoning_tokens": INTEGER}),
        "total_tokens": INTEGER,
    }
)
_COUNTED = ("total", "completed", "failed", "processing", "succeeded", "errored", "canceled", "expired")

SUBMISSION = custom_id_submission(
    custom_id={"type": "string", "minLength": 1, "maxLength": 512},
    body="A Chat Completions request, without streaming.",
)
BATCH = whole(
    {
        "id": STRING,
        "object": one_of("batch"),
        "endpoint": STRING,
        "model": maybe(STRING),
        "errors": maybe({"type": "object"}),
        "input_file_id": STRING,
        "completion_window": STRING,
        "status": one_of("in_progress", "cancelling", "completed", "cancelled", "expired"),
        "output_file_id": maybe(STRING),
        "error_file_id": maybe(STRING),
        "created_at": _EPOCH,
        "expires_at": _EPOCH,
        "in_progress_at": _EPOCH,
        **{
            f"{word}_at": maybe(_EPOCH)
            for word in ("finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
        },
        "request_counts": whole(dict.fromkeys(_COUNTED, INTEGER)),
        "metadata": {"type": "object", "additionalProperties": STRING},
        "usage": maybe(_USAGE),
        "processing_status": PROCESSING_STATUS,
        "results_url": maybe({"type": "string", "format": "uri"}),
    }
)
LISTED = whole(
    {
        "object": one_of("list"),
        "data": list_of(BATCH),
        "first_id": maybe(STRING),
        "last_id": maybe(STRING),
        "has_more": {"type": "boolean"},
    }
)
DELETED = whole({"id": STRING, "object": one_of("batch"), "deleted": {"type": "boolean"}})
