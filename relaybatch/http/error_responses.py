"""DRF's content negotiation and error handling: always JSON, and errors in the envelope of the request's path."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, NoReturn

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, InternalError, OperationalError
from django.http import Http404, HttpResponse
from msgspec import json
from rest_framework import exceptions
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from relaybatch import log_format
from relaybatch.http import errors
from relaybatch.http.error_envelopes import (
    ErrorDetail,
    ErrorResponse,
    ErrorType,
    MessagesErrorDetail,
    MessagesErrorResponse,
    MessagesErrorType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.http import HttpRequest
    from rest_framework.request import Request

logger = logging.getLogger(__name__)

MESSAGES_PREFIX = "/v1/messages/"
RETRY_AFTER_MAX_SECONDS = 60
# SDKs retry a 409 by default, and some a 404 or 413 of a gateway.
NOT_RETRYABLE = (404, 409, 413)

# https://docs.claude.com/en/api/errors
_MESSAGES_TYPES: dict[int, MessagesErrorType] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
_OTHER_TYPES: dict[int, ErrorType] = {403: "permission_error", 429: "rate_limit_error"}


class IgnoreAccept(BaseContentNegotiation):
    """Ignore the Accept header, so that there is no 406: SDKs ask for `application/binary` to get JSON lines."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:  # noqa: ARG002
        return next(iter(parsers))

    def select_renderer(
        self,
        request: Request,  # noqa: ARG002
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,  # noqa: ARG002
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""


class UnparsedJson(BaseParser):
    """Fail if a view uses `request.data`: DRF would read a body of any size."""

    media_type = "application/json"

    def parse(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError("a body is read within a limit: see relaybatch.http.body.body_limits")


class JsonRenderer(BaseRenderer):
    """Structs and plain values as JSON; an `indent` of the caller's has no effect.

    U+2028 and U+2029 are escaped: JavaScript once took them for the ends of lines.
    """

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,  # noqa: ARG002 -- DRF's signature
        renderer_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> bytes:
        if data is None:  # a response without a body
            return b""
        body = json.encode(data)
        return body.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")


def is_messages_path(path: str) -> bool:
    """Whether errors at this path have Anthropic's form."""
    return f"{path}/".startswith(MESSAGES_PREFIX)


def error_response(request: HttpRequest, error: errors.ApiError) -> HttpResponse:
    """Render the error in the path's envelope: Anthropic's under /v1/messages/, else OpenAI's."""
    status = error.http_status
    response = HttpResponse(
        json.encode(_envelope(request, error)), status=status, content_type="application/json"
    )
    if status == 401:
        response["WWW-Authenticate"] = "Bearer"
    if status in NOT_RETRYABLE:
        response["x-should-retry"] = "false"
    seconds = getattr(error, "retry_after_seconds", None)
    if seconds is not None:
        response["Retry-After"] = str(min(max(math.ceil(seconds), 1), RETRY_AFTER_MAX_SECONDS))
    return response


def _envelope(request: HttpRequest, error: errors.ApiError) -> ErrorResponse | MessagesErrorResponse:
    status = error.http_status
    if is_messages_path(request.path_info):
        messages_default: MessagesErrorType = "api_error" if status >= 500 else "invalid_request_error"
        messages_kind = _MESSAGES_TYPES.get(status, messages_default)
        detail = MessagesErrorDetail(type=messages_kind, message=error.message)
        return MessagesErrorResponse(type="error", error=detail, request_id=log_format.request_id.get())
    default: ErrorType = "server_error" if status >= 500 else "invalid_request_error"
    kind = _OTHER_TYPES.get(status, default)
    return ErrorResponse(
        error=ErrorDetail(message=error.message, type=kind, param=error.param, code=error.code)
    )


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """DRF's hook: turn every exception of a view into a response. Unexpected ones are logged and become a 500."""
    request = context["request"]
    return error_response(request, _to_api_error(exception, request))


def _to_api_error(exception: Exception, request: HttpRequest) -> errors.ApiError:
    if isinstance(exception, errors.ApiError):
        return exception
    if isinstance(exception, exceptions.APIException | Http404 | PermissionDenied | SuspiciousOperation):
        return _from_framework(exception)
    _log_unexpected(exception, request)
    return unexpected_error(exception)


def unexpected_error(exception: BaseException | None) -> errors.ApiError:
    """The API error for an unexpected exception: 503 while the database is unavailable, else 500."""
    if isinstance(exception, OperationalError | InterfaceError | InternalError):
        return errors.Unavailable(
            "The database does not answer; try again soon.", code="database_unavailable"
        )
    return errors.ApiError("Something went wrong here; the request id finds it in our logs.")


def _from_framework(exception: Exception) -> errors.ApiError:
    match exception:
        case Http404() | exceptions.NotFound():
            return route_not_found()
        case exceptions.MethodNotAllowed():
            return errors.MethodNotAllowed(
                "This method is not allowed here; the Allow header names those that are."
            )
        case exceptions.NotAuthenticated():
            return errors.Unauthenticated(
                "No credential given: send Authorization: Bearer or x-api-key.", code="missing_credential"
            )
        case exceptions.AuthenticationFailed():
            return errors.Unauthenticated("The credential is not valid.")
        case exceptions.PermissionDenied() | PermissionDenied():
            return errors.Forbidden("This credential may not do that.")
        case exceptions.ParseError():
            return errors.InvalidRequest("The body is no valid JSON.", code="invalid_json")
        case _:
            return errors.InvalidRequest("The request could not be understood.", code="bad_request")


def route_not_found() -> errors.NotFound:
    return errors.NotFound("There is nothing at this path.")


def _log_unexpected(exception: BaseException, request: HttpRequest) -> None:
    logger.error("unexpected exception in a view", exc_info=exception, extra={"method": request.method})
