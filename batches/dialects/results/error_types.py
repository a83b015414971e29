"""Why an item failed: the type, one of Anthropic's, and the upstream's own message where it gave one.

The types: https://docs.claude.com/en/api/errors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batches.dialects.results.upstream_message import parse_upstream_error
from batches.results.results import UNREADABLE_ERROR

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
_BY_CODE = {
    "timeout": "timeout_error",
    "cross_shape": "invalid_request_error",
    "invalid_item": "invalid_request_error",
    "model_not_found": "not_found_error",
    "model_not_allowed": "permission_error",
    "model_disabled": "permission_error",
    "rate_limited": "rate_limit_error",
    "usage_limit_exceeded": "billing_error",
    **{
        f"credential_{fault}": "authentication_error"
        for fault in ("disabled", "revoked", "expired", "rotated", "deleted")
    },
    **dict.fromkeys(
        ("policy_deleted", "policy_disabled", "project_disabled", "principal_disabled"), "permission_error"
    ),
}


@dataclass(frozen=True, slots=True)
class ItemError:
    """`request_id`: the upstream's, None where its response has none."""

    type: str
    message: str
    request_id: str | None = None


def item_error(result: Result) -> ItemError:
    """The error of a discarded item, or of a completed one whose stored response cannot be read."""
    row = result.row
    if result.is_unreadable:
        return ItemError("api_error", UNREADABLE_ERROR)
    if row.error_code != "upstream_status":
        return ItemError(_BY_CODE.get(row.error_code, "api_error"), row.error)
    status = row.upstream_status or 0
    upstream = parse_upstream_error(bytes(row.upstream_error or b""))
    known = next(filter(_KNOWN_TYPES.__contains__, upstream.types), None)
    raw_text = upstream.text if 400 <= status < 500 else upstream.plain_text
    return ItemError(
        type=known or _type_by_status(status),
        message=upstream.message or raw_text or row.error,
        request_id=upstream.request_id,
    )


def _type_by_status(status: int) -> str:
    return _BY_STATUS.get(status, "invalid_request_error" if 400 <= status < 500 else "api_error")
