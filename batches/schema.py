"""What the OpenAPI description says of the batch routes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from batches.dialects.relay_results import FORMATS, INCLUDES, LIMIT_MOST
from batches.dialects.relay_submission import METADATA_PAIRS, SHAPES
from batches.models import ItemState

_STRING: dict[str, Any] = {"type": "string"}
_TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
_COUNTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "integer"}}
_STATE: dict[str, Any] = {"type": "string", "enum": list(ItemState.values)}
_USAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tokens": _COUNTS,
        "cost_nanos": {"type": "integer"},
        "currency": _STRING,
        "unpriced": {"type": "integer", "description": "Attempts without a price; not in cost_nanos."},
    },
}


def _object(properties: dict[str, Any], *, required: tuple[str, ...] = ()) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": list(required)} if required else {})


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _maybe(schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {"nullable": True}


_SUBMISSION = _object(
    {
        "shape": {"type": "string", "enum": list(SHAPES)},
        "requests": _list({"type": "object"})
        | {"minItems": 1, "description": "Bodies of that shape, each with a `model` and without streaming."},
        "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
        "on_rate_limit": {"type": "string", "enum": ["fail", "wait"], "default": "fail"},
        "expires_in_seconds": {"type": "integer", "minimum": 60, "maximum": 2_592_000},
        "metadata": {"type": "object", "additionalProperties": _STRING, "maxProperties": METADATA_PAIRS},
    },
    required=("shape", "requests"),
)
_ACCEPTED = _object({"id": _STRING, "status": _STRING, "total_items": {"type": "integer"}})
_LISTED = {
    "ID": _STRING,
    "RelayKeyHash": _STRING,
    "PolicyID": _STRING,
    "InboundShape": _STRING,
    "Status": {"type": "string", "enum": ["queued", "cancelled"]},
    "TotalItems": {"type": "integer"},
    "CreatedAt": _TIME,
    "CompletedAt": _maybe(_TIME),
    "ProjectID": _maybe(_STRING),
    "TeamID": _maybe(_STRING),
    "PrincipalKind": _STRING,
    "PrincipalID": _STRING,
    "CredentialKind": _STRING,
    "CredentialID": _STRING,
    "counts": _COUNTS,
    "processing_status": {"type": "string", "enum": ["in_progress", "canceling", "ended"]},
    "expires_at": _maybe(_TIME),
    "waiting": _COUNTS,
    "usage": _USAGE,
    "metadata": {"type": "object", "additionalProperties": _STRING},
}
_STATUS = _object({**_LISTED, "items": _list(_object({"idx": {"type": "integer"}, "state": _STATE}))})
_RESULT = _object(
    {
        "idx": {"type": "integer"},
        "state": _STATE,
        "response": {"type": "object", "description": "The upstream's answer, only of completed items."},
        "error": _STRING,
        "error_code": _maybe(_STRING),
        "upstream_status": _maybe({"type": "integer"}),
        "upstream_error": _maybe(_STRING),
        "usage": _maybe(_USAGE),
    },
    required=("idx", "state"),
)
_ERROR = OpenApiResponse(
    _object({"error": _object({name: _maybe(_STRING) for name in ("message", "type", "param", "code")})}),
    description="Refused; nothing was stored.",
)
_STATES = OpenApiParameter("state", str, description=f"One or more of {', '.join(ItemState.values)}.")
# The lookup is by hand, since malformed ids are a 404 as well.
_ID = OpenApiParameter("batch_id", str, OpenApiParameter.PATH)

CREATE = extend_schema(
    operation_id="create_batch",
    parameters=[OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER)],
    request={"application/json": _SUBMISSION},
    responses={202: _ACCEPTED, 400: _ERROR, 401: _ERROR, 403: _ERROR, 409: _ERROR, 429: _ERROR},
)
LIST = extend_schema(
    operation_id="list_batches",
    parameters=[
        OpenApiParameter("dialect", str, enum=["relay"], required=True),
        OpenApiParameter("limit", int, description="1 to 100, 20 when left out."),
        OpenApiParameter("cursor", str, description="The `next_cursor` of an earlier answer."),
    ],
    responses={
        200: _object({"batches": _list(_object(_LISTED)), "next_cursor": _maybe(_STRING)}),
        400: _ERROR,
    },
)
RETRIEVE = extend_schema(
    operation_id="get_batch",
    parameters=[_ID, OpenApiParameter("items", bool, description="false leaves `items` out."), _STATES],
    responses={200: _STATUS, 404: _ERROR},
)
RESULTS = extend_schema(
    operation_id="get_batch_results",
    parameters=[
        _ID,
        _STATES,
        OpenApiParameter("include", str, description=f"One or more of {', '.join(INCLUDES)}."),
        OpenApiParameter("after_idx", int, description="Only items behind this one."),
        OpenApiParameter("limit", int, description=f"1 to {LIMIT_MOST}."),
        OpenApiParameter("format", str, enum=list(FORMATS)),
    ],
    responses={
        (200, "application/json"): _object({"results": _list(_RESULT)}),
        (200, "application/x-jsonl"): OpenApiTypes.STR,
        404: _ERROR,
    },
)
CANCEL = extend_schema(
    operation_id="cancel_batch",
    parameters=[_ID],
    request=None,
    responses={200: _object({"status": {"type": "string", "enum": ["cancelled"]}}), 404: _ERROR},
)
RETRY = extend_schema(
    operation_id="retry_batch",
    parameters=[_ID, OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER)],
    request={
        "application/json": _object(
            {
                "error_code": _list(_STRING),
                "idx": _list({"type": "integer"}),
                "custom_id": _list(_STRING),
            }
        )
    },
    responses={202: _ACCEPTED, 400: _ERROR, 404: _ERROR, 409: _ERROR},
)
DELETE = extend_schema(
    operation_id="delete_batch", parameters=[_ID], responses={204: None, 404: _ERROR, 409: _ERROR}
)


class CredentialScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "routing.authentication.CredentialAuthentication"
    name = ["relayKey", "xApiKey"]

    def get_security_definition(self, auto_schema: object) -> list[dict[str, str]]:  # noqa: ARG002
        return [
            {"type": "http", "scheme": "bearer"},
            {"type": "apiKey", "in": "header", "name": "x-api-key"},
        ]
