"""Errors of the API: one root class, and a subclass for each decision that a caller can take.

Each has a stable public `code` and an HTTP status. `param` names the invalid field, as `requests[3].model`.
A message never holds a prompt, an answer, a credential or a secret.
"""

from __future__ import annotations


class ApiError(Exception):
    """Base class of all errors that become an HTTP response."""

    http_status = 500
    code = "internal_error"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.param = param


class InvalidRequest(ApiError):  # noqa: N818 -- named for what the caller reads
    http_status = 400
    code = "invalid_field"


class Unauthenticated(ApiError):  # noqa: N818
    http_status = 401
    code = "invalid_credential"


class Forbidden(ApiError):  # noqa: N818
    http_status = 403
    code = "forbidden"


class NotFound(ApiError):  # noqa: N818
    http_status = 404
    code = "not_found"


class MethodNotAllowed(ApiError):  # noqa: N818
    http_status = 405
    code = "method_not_allowed"


class Conflict(ApiError):  # noqa: N818
    http_status = 409
    code = "conflict"


class LengthRequired(ApiError):  # noqa: N818
    http_status = 411
    code = "length_required"


class TooLarge(ApiError):  # noqa: N818
    http_status = 413
    code = "body_too_large"


class RangeNotSatisfiable(ApiError):  # noqa: N818
    http_status = 416
    code = "range_not_satisfiable"


class TooManyRequests(ApiError):  # noqa: N818
    http_status = 429
    code = "rate_limited"


class Unavailable(ApiError):  # noqa: N818
    """A temporary failure of ours: the caller may retry after `retry_after_seconds` (at most 60)."""

    http_status = 503
    code = "unavailable"
    retry_after_seconds = 5
