"""The two forms in which an error reaches a caller: OpenAI's, and Anthropic's under /v1/messages/.

https://platform.openai.com/docs/guides/error-codes, https://docs.claude.com/en/api/errors
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

ErrorType: TypeAlias = Literal[
    "invalid_request_error", "permission_error", "rate_limit_error", "server_error"
]
MessagesErrorType: TypeAlias = Literal[
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "not_found_error",
    "conflict_error",
    "request_too_large",
    "rate_limit_error",
    "api_error",
    "overloaded_error",
]


class ErrorDetail(Struct, frozen=True, kw_only=True):
    message: Annotated[str, Meta(description="For people; it may change.")]
    type: ErrorType
    param: Annotated[str | None, Meta(description="The field, parameter or header, as `requests[3].model`.")]
    code: Annotated[str, Meta(description="Stable; docs/api/errors.md lists them.")]


class ErrorResponse(Struct, frozen=True, kw_only=True):
    """An error in OpenAI's form."""

    error: ErrorDetail


class MessagesErrorDetail(Struct, frozen=True, kw_only=True):
    type: MessagesErrorType
    message: Annotated[str, Meta(description="For people; it may change.")]


class MessagesErrorResponse(Struct, frozen=True, kw_only=True):
    """An error in Anthropic's form."""

    type: Literal["error"]
    error: MessagesErrorDetail
    request_id: str
