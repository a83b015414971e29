"""What the OpenAPI description says of the batch routes. Where dialects share a route, it lists what each answers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema

from batches.dialects.relay.results import FORMATS, INCLUDABLE_FIELDS, MAX_LIMIT
from batches.models import ITEM_STATES
from batches.openapi import chat, relay
from batches.openapi.forms import (
    ERROR,
    ID,
    IDEMPOTENCY_KEY,
    SELECTION,
    STRING,
    list_of,
    maybe,
    object_of,
    one_of,
)

_STATES = OpenApiParameter("state", str, description=f"One or more of {', '.join(ITEM_STATES)}.")


def _either(*schemas: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": list(schemas)}


CREATE = extend_schema(
    operation_id="create_batch",
    parameters=[IDEMPOTENCY_KEY],
    request={"application/json": _either(relay.SUBMISSION, chat.SUBMISSION)},
    responses={200: chat.BATCH, 202: relay.ACCEPTED, **dict.fromkeys((400, 401, 403, 409, 429), ERROR)},
)
LIST = extend_schema(
    operation_id="list_batches",
    parameters=[
        OpenApiParameter("dialect", str, enum=["chat", "relay"], default="chat"),
        OpenApiParameter("limit", int, description="1 to 100, 20 when left out."),
        OpenApiParameter("after", str, description="chat: only batches older than this one."),
        OpenApiParameter("after_id", str, description="chat: the same in the words of Message Batches."),
        OpenApiParameter("before_id", str, description="chat: only batches just newer than this one."),
        OpenApiParameter("cursor", str, description="relay: the `next_cursor` of an earlier answer."),
    ],
    responses={
        200: _either(
            chat.LISTED,
            object_of({"batches": list_of(object_of(relay.LISTED)), "next_cursor": maybe(STRING)}),
        ),
        400: ERROR,
    },
)
RETRIEVE = extend_schema(
    operation_id="get_batch",
    parameters=[
        ID,
        OpenApiParameter("items", bool, description="relay: false leaves `items` out."),
        _STATES,
    ],
    responses={200: _either(relay.STATUS, chat.BATCH), 404: ERROR},
)
RESULTS = extend_schema(
    operation_id="get_batch_results",
    parameters=[
        ID,
        _STATES,
        OpenApiParameter(
            "include", str, description=f"relay: one or more of {', '.join(INCLUDABLE_FIELDS)}."
        ),
        OpenApiParameter("after_idx", int, description="relay: only items behind this one."),
        OpenApiParameter("limit", int, description=f"relay: 1 to {MAX_LIMIT}."),
        OpenApiParameter("format", str, enum=list(FORMATS), description="relay: chat's are lines."),
    ],
    responses={
        (200, "application/json"): object_of({"results": list_of(relay.RESULT)}),
        (200, "application/x-jsonl"): OpenApiTypes.STR,
        404: ERROR,
        409: ERROR,
    },
)
CANCEL = extend_schema(
    operation_id="cancel_batch",
    parameters=[ID],
    request=None,
    responses={200: _either(object_of({"status": one_of("cancelled")}), chat.BATCH), 404: ERROR},
)
RETRY = extend_schema(
    operation_id="retry_batch",
    parameters=[ID, IDEMPOTENCY_KEY],
    request={"application/json": SELECTION},
    responses={200: chat.BATCH, 202: relay.ACCEPTED, 400: ERROR, 404: ERROR, 409: ERROR},
)
DELETE = extend_schema(
    operation_id="delete_batch",
    parameters=[ID],
    responses={200: chat.DELETED, 204: None, 404: ERROR, 409: ERROR},
)


class CredentialScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "routing.credentials.authentication.CredentialAuthentication"
    name = ["relayKey", "xApiKey"]

    def get_security_definition(self, auto_schema: object) -> list[dict[str, str]]:  # noqa: ARG002
        return [
            {"type": "http", "scheme": "bearer"},
            {"type": "apiKey", "in": "header", "name": "x-api-key"},
        ]
