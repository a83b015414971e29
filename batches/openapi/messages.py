"""Message Batches."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view

from batches.dialects.forwarded_headers import FORWARDED_HEADERS
from batches.dialects.messages import MAX_LIST_LIMIT, STATE_BY_COUNT
from batches.openapi.forms import (
    ID,
    IDEMPOTENCY_KEY,
    INTEGER,
    PROCESSING_STATUS,
    SELECTION,
    STRING,
    TIME,
    custom_id_submission,
    list_of,
    maybe,
    object_of,
    one_of,
    whole,
)

_ERROR = OpenApiResponse(
    object_of(
        {
            "type": one_of("error"),
            "error": object_of({"type": STRING, "message": STRING}),
            "request_id": STRING,
        }
    ),
    description="Refused; nothing was stored.",
)
_MESSAGE_BATCH: dict[str, Any] = whole(
    {
        "id": STRING,
        "type": one_of("message_batch"),
        "processing_status": PROCESSING_STATUS,
        "request_counts": whole(dict.fromkeys(("processing", *STATE_BY_COUNT), INTEGER)),
        "created_at": TIME,
        "expires_at": TIME,
        "ended_at": maybe(TIME),
        "cancel_initiated_at": maybe(TIME),
        "archived_at": maybe(TIME),
        "results_url": maybe({"type": "string", "format": "uri"}),
    }
)
_SUBMISSION = custom_id_submission(
    custom_id={"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
    body="A Messages request, without streaming.",
)
_DELETED = whole({"id": STRING, "type": one_of("message_batch_deleted")})

VIEWS = extend_schema_view(
    create=extend_schema(
        operation_id="create_message_batch",
        parameters=[
            IDEMPOTENCY_KEY,
            *(OpenApiParameter(name, str, OpenApiParameter.HEADER) for name in FORWARDED_HEADERS),
        ],
        request={"application/json": _SUBMISSION},
        responses={200: _MESSAGE_BATCH, **dict.fromkeys((400, 401, 403, 409, 413, 429), _ERROR)},
    ),
    list=extend_schema(
        operation_id="list_message_batches",
        parameters=[
            OpenApiParameter("limit", int, description=f"1 to {MAX_LIST_LIMIT}, 20 when left out."),
            OpenApiParameter("after_id", str, description="Only batches older than this one."),
            OpenApiParameter("before_id", str, description="The page of batches just newer than this one."),
        ],
        responses={
            200: whole(
                {
                    "data": list_of(_MESSAGE_BATCH),
                    "has_more": {"type": "boolean"},
                    "first_id": maybe(STRING),
                    "last_id": maybe(STRING),
                }
            ),
            400: _ERROR,
        },
    ),
    retrieve=extend_schema(
        operation_id="get_message_batch", parameters=[ID], responses={200: _MESSAGE_BATCH, 404: _ERROR}
    ),
    destroy=extend_schema(
        operation_id="delete_message_batch",
        parameters=[ID],
        responses={200: _DELETED, 404: _ERROR, 409: _ERROR},
    ),
)
# extend_schema_view knows the usual actions only.
RESULTS = extend_schema(
    operation_id="get_message_batch_results",
    parameters=[ID, OpenApiParameter("anthropic-version", str, OpenApiParameter.HEADER)],
    responses={(200, "application/x-jsonl"): OpenApiTypes.STR, 404: _ERROR, 409: _ERROR},
)
CANCEL = extend_schema(
    operation_id="cancel_message_batch",
    parameters=[ID],
    request=None,
    responses={200: _MESSAGE_BATCH, 404: _ERROR},
)
RETRY = extend_schema(
    operation_id="retry_message_batch",
    parameters=[ID, IDEMPOTENCY_KEY],
    request={"application/json": SELECTION},
    responses={200: _MESSAGE_BATCH, 400: _ERROR, 404: _ERROR, 409: _ERROR},
)
