"""What the OpenAPI description says of the token routes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiResponse, extend_schema

from routing.credentials.tokens import DEFAULT_TTL_SECONDS, MAX_TTL_SECONDS

_STRING: dict[str, Any] = {"type": "string"}
_JTI: dict[str, Any] = {"type": "string", "format": "uuid"}
_ERROR = OpenApiResponse({"type": "object"}, description="Refused; nothing was changed.")

MINT = extend_schema(
    operation_id="create_token",
    request={
        "application/json": {
            "type": "object",
            "properties": {
                "project": _STRING | {"description": "The name of your own project; it may be left out."},
                "ttl": {
                    "oneOf": [{"type": "integer", "minimum": 1, "maximum": MAX_TTL_SECONDS}, _STRING],
                    "description": "Seconds, or a span as 30m.",
                    "default": DEFAULT_TTL_SECONDS,
                },
            },
        }
    },
    responses={
        200: {
            "type": "object",
            "properties": {
                "token": _STRING,
                "jti": _JTI,
                "expires_at": {"type": "string", "format": "date-time"},
                "project": _STRING,
            },
            "required": ["token", "jti", "expires_at", "project"],
        },
        400: _ERROR,
        401: _ERROR,
        403: _ERROR,
    },
)
REVOKE = extend_schema(
    request={
        "application/json": {
            "type": "object",
            "properties": {"jti": _JTI | {"description": "Left out: all of your tokens."}},
        }
    },
    responses={
        200: {"type": "object", "properties": {"revoked": {"type": "integer"}}, "required": ["revoked"]},
        400: _ERROR,
        401: _ERROR,
        403: _ERROR,
    },
)


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "routing.credentials.session_authentication.SessionLoginAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:  # noqa: ARG002
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "A session of the admin's login, with its CSRF token in X-CSRFToken.",
        }
