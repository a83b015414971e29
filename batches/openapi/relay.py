"""Relay's batches."""

from __future__ import annotations

from typing import Any

from batches.dialects.relay.submission import MAX_METADATA_PAIRS, SHAPES
from batches.models import ITEM_STATES
from batches.openapi.forms import COUNTS, PROCESSING_STATUS, STRING, TIME, list_of, maybe, object_of

_STATE: dict[str, Any] = {"type": "string", "enum": list(ITEM_STATES)}
_USAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tokens": COUNTS,
        "cost_nanos": {"type": "integer"},
        "currency": STRING,
        "unpriced": {"type": "integer", "description": "Attempts without a price; not in cost_nanos."},
    },
}

SUBMISSION = object_of(
    {
        "shape": {"type": "string", "enum": list(SHAPES)},
        "requests": list_of({"type": "object"})
        | {"minItems": 1, "description": "Bodies of that shape, each with a `model` and without streaming."},
        "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
        "on_rate_limit": {"type": "string", "enum": ["fail", "wait"], "default": "fail"},
        "expires_in_seconds": {"type": "integer", "minimum": 60, "maximum": 2_592_000},
        "metadata": {"type": "object", "additionalProperties": STRING, "maxProperties": MAX_METADATA_PAIRS},
    },
    required=("shape", "requests"),
)
ACCEPTED = object_of({"id": STRING, "status": STRING, "total_items": {"type": "integer"}})
LISTED = {
    "ID": STRING,
    "RelayKeyHash": STRING,
    "PolicyID": STRING,
    "InboundShape": STRING,
    "Status": {"type": "string", "enum": ["queued", "cancelled"]},
    "TotalItems": {"type": "integer"},
    "CreatedAt": TIME,
    "CompletedAt": maybe(TIME),
    "ProjectID": maybe(STRING),
    "TeamID": maybe(STRING),
    "PrincipalKind": STRING,
    "PrincipalID": STRING,
    "CredentialKind": STRING,
    "CredentialID": STRING,
    "counts": COUNTS,
    "processing_status": PROCESSING_STATUS,
    "expires_at": maybe(TIME),
    "waiting": COUNTS,
    "usage": _USAGE,
    "metadata": {"type": "object", "additionalProperties": STRING},
}
STATUS = object_of({**LISTED, "items": list_of(object_of({"idx": {"type": "integer"}, "state": _STATE}))})
RESULT = object_of(
    {
        "idx": {"type": "integer"},
        "state": _STATE,
        "response": {"type": "object", "description": "The upstream's answer, only of completed items."},
        "error": STRING,
        "error_code": maybe(STRING),
        "upstream_status": maybe({"type": "integer"}),
        "upstream_error": maybe(STRING),
        "usage": maybe(_USAGE),
    },
    required=("idx", "state"),
)
