"""The pieces that the descriptions are put together from."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

STRING: dict[str, Any] = {"type": "string"}
TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
INTEGER: dict[str, Any] = {"type": "integer"}
COUNTS: dict[str, Any] = {"type": "object", "additionalProperties": INTEGER}


def object_of(properties: dict[str, Any], *, required: tuple[str, ...] = ()) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": list(required)} if required else {})


def whole(properties: dict[str, Any]) -> dict[str, Any]:
    """An object that always has all of its keys."""
    return object_of(properties, required=tuple(properties))


def list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def maybe(schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {"nullable": True}


def custom_id_submission(*, custom_id: dict[str, Any], body: str) -> dict[str, Any]:
    item = object_of(
        {"custom_id": custom_id, "params": {"type": "object", "description": body}},
        required=("custom_id", "params"),
    )
    return object_of({"requests": list_of(item) | {"minItems": 1}}, required=("requests",))


ERROR = OpenApiResponse(
    object_of({"error": object_of({name: maybe(STRING) for name in ("message", "type", "param", "code")})}),
    description="Refused; nothing was stored.",
)
# The lookup is by hand, since malformed ids are a 404 as well.
ID = OpenApiParameter("batch_id", str, OpenApiParameter.PATH)
IDEMPOTENCY_KEY = OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER)
SELECTION = object_of({"error_code": list_of(STRING), "idx": list_of(INTEGER), "custom_id": list_of(STRING)})
PROCESSING_STATUS = one_of("in_progress", "canceling", "ended")
