"""Why an item failed: the type, one of Anthropic's, and the upstream's own message where it gave one.

The types: https://docs.claude.com/en/api/errors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batches.dialects.results.upstream_message import parse_upstream_error
from batches.results.results import UNREADABLE_ERROR
from routing.calls.failures import FailureCode

if TYPE_CHECKING:
    from batches.results.results import Result

_KNOWN_TYPES = frozenset(
    {
        *("invalid_request_error", "authentication_error", "billing_error", "permission_error"),
        *("not_found_error", "rate_limit_error", "timeout_error", "api_error", "overloaded_error"),
    }
)
_BY_STATUS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
# Other codes are failures of this service or of the upstream: api_error.
_BY_CODE: dict[str, str] = {
    FailureCode.TIMEOUT: "timeout_error",
    FailureCode.CROSS_SHAPE: "invalid_request_error",
    FailureCode.INVALID_ITEM: "invalid_request_error",
    FailureCode.MODEL_NOT_FOUND: "not_found_error",
    FailureCode.MODEL_NOT_ALLOWED: "permission_error",
    FailureCode.MODEL_DISABLED: "permission_error",
    FailureCode.RATE_LIMITED: "rate_limit_error",
    FailureCode.USAGE_LIMIT_EXCEEDED: "billing_error",
    FailureCode.CREDENTIAL_DISABLED: "authentication_error",
    FailureCode.CREDENTIAL_REVOKED: "authentication_error",
    FailureCode.CREDENTIAL_EXPIRED: "authentication_error",
    FailureCode.CREDENTIAL_ROTATED: "authentication_error",
    FailureCode.CREDENTIAL_DELETED: "authentication_error",
    FailureCode.POLICY_DELETED: "permission_error",
    FailureCode.POLICY_DISABLED: "permission_error",
    FailureCode.PROJECT_DISABLED: "permission_error",
    FailureCode.PRINCIPAL_DISABLED: "permission_error",
}


@dataclass(frozen=True, slots=True)
class ItemError:
    """`request_id`: the upstream's, of its error body or else of its headers; None where it gave none."""

    type: str
    message: str
    request_id: str | None = None


def item_error(result: Result) -> ItemError:
    """The error of a discarded item, or of a completed one whose stored response cannot be read."""
    row = result.row
    of_headers = row.upstream_request_id or None
    if result.is_unreadable:
        return ItemError("api_error", UNREADABLE_ERROR, of_headers)
    if row.error_code != FailureCode.UPSTREAM_STATUS:
        return ItemError(_BY_CODE.get(row.error_code, "api_error"), row.error, of_headers)
    status = row.upstream_status or 0
    upstream = parse_upstream_error(bytes(row.upstream_error or b""))
    known = next(filter(_KNOWN_TYPES.__contains__, upstream.types), None)
    raw_text = upstream.text if 400 <= status < 500 else upstream.plain_text
    return ItemError(
        type=known or _type_by_status(status),
        message=upstream.message or raw_text or row.error,
        request_id=upstream.request_id or of_headers,
    )


def _type_by_status(status: int) -> str:
    return _BY_STATUS.get(status, "invalid_request_error" if 400 <= status < 500 else "api_error")
