"""The bodies of creations. They are read member by member as bytes, so their schemas are written out here."""

from __future__ import annotations

from typing import Any

from batches.dialects.body_members import (
    MAX_METADATA_KEY_CHARACTERS,
    MAX_METADATA_PAIRS,
    MAX_METADATA_VALUE_CHARACTERS,
)
from batches.dialects.chat import CUSTOM_ID_RULE as CHAT_CUSTOM_ID
from batches.dialects.messages import CUSTOM_ID_RULE as MESSAGES_CUSTOM_ID
from batches.dialects.openai.endpoints import SHAPE_BY_ENDPOINT
from batches.dialects.openai.submission import (
    COMPLETION_WINDOW,
)
from batches.dialects.relay.submission import (
    MAX_ATTEMPTS,
    MAX_LIFETIME_SECONDS,
    MIN_LIFETIME_SECONDS,
    accepted_shapes,
)
from batches.files import upload_fields
from batches.states import RateLimitMode
from relaybatch.http.openapi import header

IDEMPOTENCY_KEY = header(
    "Idempotency-Key",
    "The same key within 24 hours gives the stored answer and no second batch or file; with another body it is a 409.",
    type="string",
    minLength=1,
    maxLength=255,
)


def _custom_id_submission(*, custom_id: dict[str, Any], params: str, title: str) -> dict[str, Any]:
    item = {
        "type": "object",
        "properties": {
            "custom_id": {"type": "string"} | custom_id,
            "params": {"type": "object", "description": params},
        },
        "required": ["custom_id", "params"],
    }
    return {
        "title": title,
        "type": "object",
        "properties": {"requests": {"type": "array", "items": item, "minItems": 1}},
        "required": ["requests"],
    }


_METADATA = {
    "type": ["object", "null"],
    "propertyNames": {"maxLength": MAX_METADATA_KEY_CHARACTERS},
    "additionalProperties": {"type": "string", "maxLength": MAX_METADATA_VALUE_CHARACTERS},
    "maxProperties": MAX_METADATA_PAIRS,
}

RELAY = {
    "title": "RelaySubmission",
    "type": "object",
    "properties": {
        "shape": {"type": "string", "enum": accepted_shapes()},
        "requests": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "model": {"type": "string", "minLength": 1},
                    "stream": {"type": ["boolean", "null"], "description": "Absent, null or false."},
                },
                "required": ["model"],
            },
            "description": "Bodies of that shape, without streaming.",
        },
        "max_attempts": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_ATTEMPTS, "default": 1},
        "on_rate_limit": {
            "type": ["string", "null"],
            "enum": [*map(str, RateLimitMode), None],
            "default": str(RateLimitMode.FAIL),
        },
        "expires_in_seconds": {
            "type": ["integer", "null"],
            "minimum": MIN_LIFETIME_SECONDS,
            "maximum": MAX_LIFETIME_SECONDS,
        },
        "metadata": _METADATA,
    },
    "required": ["shape", "requests"],
}
OPENAI = {
    "title": "FileSubmission",
    "type": "object",
    "properties": {
        "input_file_id": {"type": "string", "description": "A file of the caller's with the purpose batch."},
        "endpoint": {"type": "string", "enum": [*SHAPE_BY_ENDPOINT]},
        "completion_window": {"type": "string", "enum": [COMPLETION_WINDOW]},
        "metadata": _METADATA,
        "output_expires_after": {
            "type": ["object", "null"],
            "description": "How long the files with the results are kept; without it, until they are deleted.",
            "properties": {
                "anchor": {"type": "string", "enum": [upload_fields.ANCHOR]},
                "seconds": {
                    "type": "integer",
                    "minimum": upload_fields.MIN_LIFETIME_SECONDS,
                    "maximum": upload_fields.MAX_LIFETIME_SECONDS,
                },
            },
            "required": ["anchor", "seconds"],
        },
    },
    "required": ["input_file_id", "endpoint", "completion_window"],
}
CHAT = _custom_id_submission(
    custom_id={"minLength": 1, "maxLength": CHAT_CUSTOM_ID.max_characters},
    params="A Chat Completions request, without streaming.",
    title="ChatSubmission",
)
MESSAGES = _custom_id_submission(
    custom_id={"pattern": f"^{MESSAGES_CUSTOM_ID.pattern.pattern}$"},
    params="A Messages request, without streaming.",
    title="MessagesSubmission",
)


def _one_or_many(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema}, {"type": "null"}]}


RETRY = {
    "title": "FailedItemFilter",
    "description": "Which of the failed items; an item has to fit every member that is there.",
    "type": "object",
    "properties": {
        "error_code": _one_or_many({"type": "string"}),
        "idx": _one_or_many({"type": "integer"}),
        "custom_id": _one_or_many({"type": "string"}),
    },
}
