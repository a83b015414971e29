"""What the OpenAPI description says of the usage routes."""

from __future__ import annotations

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema

from usage.queries import (
    COLUMN_BY_FILTER,
    COLUMN_BY_GROUP,
    INTERVALS,
    MAX_PAGE_LIMIT,
    MAX_POINTS,
    SOURCES,
    STATUS_CLASSES,
)

_FILTERS = [
    *(
        OpenApiParameter(name, str, description="One or more, separated by commas.")
        for name in (*COLUMN_BY_FILTER, "status")
        if name != "source"
    ),
    OpenApiParameter("source", str, enum=SOURCES),
    OpenApiParameter("status_class", str, enum=list(STATUS_CLASSES)),
    OpenApiParameter("since", str, description="How far back: 30m, 1h, 7d."),
    OpenApiParameter("from", OpenApiTypes.DATETIME, description="Included."),
    OpenApiParameter("to", OpenApiTypes.DATETIME, description="Not included."),
]
_GROUP_BY = OpenApiParameter("group_by", str, description=f"One or more of {', '.join(COLUMN_BY_GROUP)}.")

EVENTS = extend_schema(
    parameters=[
        *_FILTERS,
        OpenApiParameter("limit", int, description=f"At most {MAX_PAGE_LIMIT}."),
        OpenApiParameter("cursor", str, description="The `next_cursor` of an earlier answer."),
        OpenApiParameter("format", str, enum=["json", "csv"]),
    ],
    responses={(200, "application/json"): OpenApiTypes.OBJECT, (200, "text/csv"): OpenApiTypes.STR},
)
SUMMARY = extend_schema(parameters=[*_FILTERS, _GROUP_BY], responses=OpenApiTypes.OBJECT)
TIMESERIES = extend_schema(
    parameters=[
        *_FILTERS,
        _GROUP_BY,
        OpenApiParameter(
            "interval", str, enum=list(INTERVALS), description=f"At most {MAX_POINTS} in the time asked for."
        ),
    ],
    responses=OpenApiTypes.OBJECT,
)
_NANOS = {"type": "integer", "nullable": True}
INCLUDED = extend_schema(
    responses={
        (200, "application/json"): {
            "type": "object",
            "properties": {
                "period": {"type": "string", "example": "2026-11", "description": "The month, UTC."},
                "included_nanos": _NANOS | {"description": "Null: no allowance."},
                "used_nanos": _NANOS | {"description": "Null: the caller has no project."},
                "remaining_nanos": _NANOS
                | {"minimum": 0, "description": "Null: no allowance. 0: spent or closed."},
                "currency": {"type": "string"},
                "resets_at": {"type": "string", "format": "date-time"},
            },
        }
    }
)


class OperatorScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "usage.authentication.OperatorAuthentication"
    name = "adminToken"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:  # noqa: ARG002
        return {"type": "http", "scheme": "bearer", "description": "RELAY_ADMIN_TOKEN, or a staff session."}
